"""Comparing a mirror with its source, byte for byte and batch for batch. For the demo and for tests of the copier.

Looks at what a copy must keep: the bytes of all records (keys, values, headers, times, in order), batch boundaries and
compression. What a copy must change (offsets, producer fields) is left out.
"""

from dataclasses import dataclass
from itertools import count

from heliograph.copy.work import MirrorPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import read_batches


@dataclass(frozen=True, slots=True)
class Compared:
    batches: int
    records: int
    size: int
    difference: str | None


async def compare(source: ClusterClient, target: ClusterClient, one: MirrorPartition) -> Compared:
    """Walk both logs from their starts to their present ends; stop at the first difference."""
    topics = (await source.metadata([one.topic])).topics
    mirrors = (await target.metadata([one.mirror])).topics
    here, there = (one.topic, one.partition), (one.mirror, one.partition)
    bounds = [
        (await list_offsets(source, topics, [here], EARLIEST, True))[here],
        (await list_offsets(source, topics, [here], LATEST, True))[here],
        (await list_offsets(target, mirrors, [there], EARLIEST, False))[there],
        (await list_offsets(target, mirrors, [there], LATEST, False))[there],
    ]
    for bound in bounds:
        if isinstance(bound, WireError):
            raise bound
    start, end, mirror_start, mirror_end = (bound for bound in bounds if isinstance(bound, int))
    if end - start != mirror_end - mirror_start:
        return Compared(
            0, 0, 0, f"{one}: {end - start} records on the source, {mirror_end - mirror_start} on the mirror"
        )
    originals = read_batches(source, topics[one.topic], one.partition, start, end)
    copies = read_batches(target, mirrors[one.mirror], one.partition, mirror_start, mirror_end)
    records = size = 0
    for number in count():
        original, copied = await anext(originals, None), await anext(copies, None)
        if original is None and copied is None:
            return Compared(number, records, size, None)
        if original is None or copied is None:
            return Compared(number, records, size, f"{one}: one side has more batches than the other")
        if not copied.same_records(original):
            where = f"source offset {original.base_offset}, mirror offset {copied.base_offset}"
            return Compared(number, records, size, f"{one}: the batches at {where} differ")
        records += original.count
        size += original.size
    raise AssertionError
