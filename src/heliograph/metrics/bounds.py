"""How much is told. A scrape stays small whatever the number of topics, partitions and groups."""

from dataclasses import dataclass

MOST_PARTITIONS = 2000
MOST_TOPICS = 5000
MOST_GROUPS = 2000

FLOW, TOPIC, PARTITION = "flow", "topic", "partition"


@dataclass(frozen=True, slots=True)
class Detail:
    """Of the whole process: whether topics have series, whether MM2's have one for each partition (else one for each
    topic, with `all` as its partition), and whether ours have."""

    topics: bool
    mm2_partitions: bool
    own_partitions: bool

    @classmethod
    def asked(cls, detail: str, topics: int, partitions: int) -> "Detail":
        """`detail` is flow, topic or partition; empty for what is within bounds."""
        if detail:
            return cls(detail != FLOW, detail == PARTITION, detail == PARTITION)
        return cls(topics <= MOST_TOPICS, partitions <= MOST_PARTITIONS, False)
