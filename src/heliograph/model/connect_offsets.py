"""Records of Kafka Connect's offsets topic for MM2's source connector, byte for byte.

MM2 finds an offset by the bytes of its key, so the fields have Java's order, and there are no spaces.
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceKey:
    connector: str
    cluster: str
    topic: str
    partition: int

    def to_bytes(self) -> bytes:
        where = {"cluster": self.cluster, "partition": self.partition, "topic": self.topic}
        return json.dumps([self.connector, where], separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, key: bytes) -> "SourceKey | None":
        """None for keys of other connectors."""
        try:
            connector, where = json.loads(key)
            return cls(str(connector), str(where["cluster"]), str(where["topic"]), int(where["partition"]))
        except (ValueError, TypeError, KeyError):
            return None


def to_value(last: int) -> bytes:
    """`last` is the offset of the last record that was copied."""
    return json.dumps({"offset": last}, separators=(",", ":")).encode()


def from_value(value: bytes) -> int | None:
    try:
        return int(json.loads(value)["offset"])
    except (ValueError, TypeError, KeyError):
        return None
