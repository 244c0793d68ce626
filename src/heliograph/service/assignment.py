"""Which lease copies which partitions: even, and sticky so that a change moves as little as possible. Pure."""

from collections.abc import Collection, Sequence

from heliograph.copy.work import MirrorPartition

Assignment = tuple[tuple[MirrorPartition, ...], ...]


def assign(partitions: Collection[MirrorPartition], before: Assignment, most: int) -> Assignment:
    """Spread partitions over at most `most` leases, leaving each where it was as far as evenness allows."""
    count = min(most, len(partitions))
    if count == 0:
        return ()
    fair = -(-len(partitions) // count)
    wanted = set(partitions)
    leases: list[list[MirrorPartition]] = [[] for _ in range(count)]
    for lease, old in zip(leases, _padded(before, count), strict=True):
        lease.extend([one for one in old if one in wanted][:fair])
    wanted.difference_update(*leases)
    for one in sorted(wanted):
        min(leases, key=len).append(one)
    return tuple(tuple(lease) for lease in leases)


def _padded(before: Assignment, count: int) -> Sequence[tuple[MirrorPartition, ...]]:
    return [before[i] if i < len(before) else () for i in range(count)]
