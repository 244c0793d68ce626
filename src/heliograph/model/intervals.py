"""Intervals: stretches of a mirror partition where mirror offset minus source offset is constant.

An interval is written to an internal topic on the target before the first record that it covers is appended, so
the mirror's end and the intervals together always tell which source offset comes next. Pure values and rules; who
reads and writes the topic is in `heliograph.copy.ledger`.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

Partition = tuple[str, int]  # source topic, partition


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """From mirror offset `target` on, the record at mirror offset t is the source's record at source + t - target.

    The ids tell incarnations apart: a topic that was deleted and created again has another id. Empty where a broker
    has no topic ids.
    """

    target: int
    source: int
    source_id: str = ""
    mirror_id: str = ""

    def source_of(self, target: int) -> int:
        return self.source + target - self.target


def covering(intervals: Iterable[Interval], mirror_id: str, target: int) -> Interval | None:
    """The interval that a mirror offset lies in, out of those of this incarnation of the mirror."""
    own = sorted(one for one in intervals if one.mirror_id == mirror_id)
    found = bisect_right(own, target, key=lambda one: one.target)
    return own[found - 1] if found else None


def to_record(partition: Partition, interval: Interval) -> tuple[bytes, bytes]:
    """Key and value for the compacted internal topic: one record per interval, the latest word on it wins."""
    key = [partition[0], partition[1], interval.target]
    value = {"source": interval.source, "source_id": interval.source_id, "mirror_id": interval.mirror_id}
    return _json(key), _json(value)


def from_record(key: bytes, value: bytes) -> tuple[Partition, Interval]:
    topic, partition, target = json.loads(key)
    fields = json.loads(value)
    return (topic, partition), Interval(target, fields["source"], fields["source_id"], fields["mirror_id"])


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
