"""How far the next gap of one mirror partition is filled, and how gaps of this partition may be filled at all."""

from dataclasses import dataclass

from heliograph.copy.offset_layout import Gap
from heliograph.model.flow import KeptOffsets


@dataclass(slots=True)
class GapFill:
    settings: KeptOffsets | None = None  # None: the mirror need not have the source's offsets
    name: str = ""  # prefix of the transactional ids that fill its gaps
    in_flight: int = 0  # transactions for the next gap
    requested: int = 0  # offsets of that gap for which a transaction was started
    marked: int = 0  # and for which it has ended
    can_fill_start: bool = True  # whether filler at the mirror's start could be deleted again
    copies_aborted: bool = True  # False: the target refuses aborted records, so they are plain gaps
    is_filling_start: bool = False
    too_wide: Gap | None = None  # the gap for which the source's offsets were given up

    @property
    def max_filler(self) -> int | None:
        """How many offsets may be filled at the mirror's start; None if it need not have the source's offsets."""
        if self.settings is None:
            return None
        return self.settings.most_filler if self.can_fill_start else 0

    def begin(self) -> None:
        self.in_flight += 1

    def end(self) -> None:
        self.in_flight -= 1

    def request(self, count: int) -> None:
        self.requested += count

    def mark(self, count: int) -> None:
        self.marked += count

    def reset(self) -> None:
        """Another gap comes next."""
        self.requested = self.marked = 0

    def claim_start(self) -> bool:
        """Whether the caller is the one to fill the mirror's start; `release_start` ends that."""
        is_first, self.is_filling_start = not self.is_filling_start, True
        return is_first

    def release_start(self) -> None:
        self.is_filling_start = False

    def refuse_start(self) -> None:
        """Filler cannot be deleted from this mirror."""
        self.can_fill_start = False

    def refuse_aborted(self) -> None:
        """The target refuses aborted records, and would again."""
        self.copies_aborted = False

    def give_up(self, gap: Gap) -> None:
        self.too_wide = gap

    def take_too_wide(self) -> Gap | None:
        """The gap for which the source's offsets were given up, once."""
        gap, self.too_wide = self.too_wide, None
        return gap
