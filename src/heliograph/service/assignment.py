"""Which lease copies which partitions: even by load, and sticky so that a change moves as little as possible. Pure."""

from collections.abc import Collection, Mapping

from heliograph.model.partitions import MirrorPartition

Assignment = tuple[tuple[MirrorPartition, ...], ...]

# A lease may have so much more than its share before partitions are moved: each move ends two leases.
_TOLERANCE = 1.25
_IDLE = 1.0  # what a partition weighs by being there


def assign(
    partitions: Collection[MirrorPartition],
    before: Assignment,
    most: int,
    load: Mapping[MirrorPartition, float] | None = None,
) -> Assignment:
    """Spread partitions over at most `most` leases, leaving each where it was as far as their load allows."""
    count = min(most, len(partitions))
    if count == 0:
        return ()
    weight = {one: _IDLE + (load or {}).get(one, 0.0) for one in partitions}
    leases: list[list[MirrorPartition]] = [[] for _ in range(count)]
    sums = [0.0] * count
    homeless = set(partitions)

    def give(one: MirrorPartition, number: int) -> None:
        leases[number].append(one)
        sums[number] += weight[one]
        homeless.discard(one)

    for number, old in enumerate(before[:count]):
        for one in old:
            if one in homeless:
                give(one, number)
    for one in sorted(homeless, key=lambda one: (-weight[one], one)):
        give(one, sums.index(min(sums)))
    _even_out(leases, sums, weight)
    return tuple(tuple(lease) for lease in leases)


def _even_out(leases: list[list[MirrorPartition]], sums: list[float], weight: dict[MirrorPartition, float]) -> None:
    """Move partitions from the lease that has most to the one that has least, as long as that helps."""
    share = sum(sums) / len(sums)
    while max(sums) > max(share * _TOLERANCE, min(sums) + _IDLE):
        full, free = sums.index(max(sums)), sums.index(min(sums))
        # Half the difference would make both equal; anything below the whole of it makes the larger one smaller.
        gap = sums[full] - sums[free]
        movable = [one for one in leases[full] if weight[one] < gap]
        if not movable:
            return
        one = min(movable, key=lambda one: (abs(weight[one] - gap / 2), one))
        leases[full].remove(one)
        leases[free].append(one)
        sums[full] -= weight[one]
        sums[free] += weight[one]
