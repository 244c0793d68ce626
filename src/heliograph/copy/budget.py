"""The memory of a lease: fetched bytes are counted until the last batch in them is appended or dropped."""

from dataclasses import dataclass


class Budget:
    """The bytes that a lease may hold, counted by fetched chunk.

    Shared out evenly, so that neither one source broker's response nor one slow target broker's queue takes it all.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self.readers = 1
        self.held_for: dict[int, int] = {}  # target leader -> bytes

    @property
    def allowance(self) -> int:
        """What one reader may ask for now."""
        return min(self.limit - self.held, self.limit // self.readers)

    @property
    def free(self) -> int:
        """What no fetched bytes take; fetches in flight are not counted."""
        return max(0, self.limit - sum(self.held_for.values()))

    def overloaded_leaders(self, before: set[int]) -> set[int]:
        """Target leaders that hold more than their share. A leader in `before` stays until half of that is free."""
        share = self.limit // max(1, len(self.held_for))
        return {leader for leader, held in self.held_for.items() if held >= (share / 2 if leader in before else share)}

    def reserve(self, size: int) -> None:
        """Count a fetch that is in flight."""
        self.held += size

    def unreserve(self, size: int) -> None:
        self.held -= size

    def hold(self, size: int, leader: int) -> None:
        self.held += size
        self.held_for[leader] = self.held_for.get(leader, 0) + size


@dataclass(slots=True, eq=False)
class Chunk:
    """Fetched bytes of one partition, given back to the budget when no batch needs them any more."""

    budget: Budget
    size: int
    leader: int
    users: int = 0

    def acquire(self) -> None:
        if self.users == 0:
            self.budget.hold(self.size, self.leader)
        self.users += 1

    def release(self) -> None:
        self.users -= 1
        if self.users == 0:
            self.budget.hold(-self.size, self.leader)
