"""How many series there are. A scrape stays small however many topics, partitions and groups there are."""

from dataclasses import dataclass

MOST_PARTITIONS = 2000
MOST_TOPICS = 5000
MOST_GROUPS = 2000

FLOW, TOPIC, PARTITION = "flow", "topic", "partition"


@dataclass(frozen=True, slots=True)
class Detail:
    """For the whole process: whether topics have series, whether MM2's metrics have one per partition (else one per
    topic, with partition `all`), and whether Heliograph's own have."""

    topics: bool
    mm2_partitions: bool
    own_partitions: bool

    @classmethod
    def asked(cls, detail: str, topics: int, partitions: int) -> "Detail":
        """`detail` is flow, topic or partition; empty for as much as the bounds allow."""
        if detail:
            return cls(detail != FLOW, detail == PARTITION, detail == PARTITION)
        return cls(topics <= MOST_TOPICS, partitions <= MOST_PARTITIONS, False)
