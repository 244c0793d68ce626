"""Which lease copies which partitions: even by load, and sticky so that a change moves as few as possible."""

import time
from collections.abc import Collection, Mapping

from heliograph.model.partitions import MirrorPartition

Assignment = tuple[tuple[MirrorPartition, ...], ...]

# A lease may have this much more than its share before partitions are moved: each move ends two leases.
_TOLERANCE = 1.25
_IDLE = 1.0  # the weight of a partition without load


class Assignor:
    """The current assignment. `computed_at` and `changed_at` are times of the monotonic clock."""

    def __init__(self) -> None:
        self.assignment: Assignment = ()
        self.computed_at = 0.0
        self.changed_at = time.monotonic()
        self.changes = 0

    def reassign(
        self, partitions: Collection[MirrorPartition], most: int, load: Mapping[MirrorPartition, float]
    ) -> None:
        self.computed_at = time.monotonic()
        before, self.assignment = self.assignment, assign(partitions, self.assignment, most, load)
        if self.assignment != before:
            self.changes += 1
            self.changed_at = self.computed_at

    def has(self, number: int) -> bool:
        return number < len(self.assignment)

    def partitions(self, number: int) -> tuple[MirrorPartition, ...]:
        """Those of one lease; none if there is no such lease."""
        return self.assignment[number] if self.has(number) else ()


def assign(
    partitions: Collection[MirrorPartition],
    before: Assignment,
    most: int,
    load: Mapping[MirrorPartition, float] | None = None,
) -> Assignment:
    """Spreads partitions over at most `most` leases, and leaves each where it was as far as the load allows."""
    count = min(most, len(partitions))
    if count == 0:
        return ()
    weight = {partition: _IDLE + (load or {}).get(partition, 0.0) for partition in partitions}
    leases: list[list[MirrorPartition]] = [[] for _ in range(count)]
    sums = [0.0] * count
    unassigned = set(partitions)

    def give(partition: MirrorPartition, number: int) -> None:
        leases[number].append(partition)
        sums[number] += weight[partition]
        unassigned.discard(partition)

    for number, old in enumerate(before[:count]):
        for partition in old:
            if partition in unassigned:
                give(partition, number)
    for partition in sorted(unassigned, key=lambda partition: (-weight[partition], partition)):
        give(partition, sums.index(min(sums)))
    _even_out(leases, sums, weight)
    return tuple(tuple(lease) for lease in leases)


def _even_out(leases: list[list[MirrorPartition]], sums: list[float], weight: dict[MirrorPartition, float]) -> None:
    """Moves partitions from the heaviest lease to the lightest, as long as that helps."""
    share = sum(sums) / len(sums)
    while max(sums) > max(share * _TOLERANCE, min(sums) + _IDLE):
        full, free = sums.index(max(sums)), sums.index(min(sums))
        # Half the difference would make both equal; anything below the whole of it makes the larger sum smaller.
        gap = sums[full] - sums[free]
        movable = [partition for partition in leases[full] if weight[partition] < gap]
        if not movable:
            return
        moved = min(movable, key=lambda partition: (abs(weight[partition] - gap / 2), partition))
        leases[full].remove(moved)
        leases[free].append(moved)
        sums[full] -= weight[moved]
        sums[free] += weight[moved]
