"""One interval: a stretch of a mirror partition where mirror offset minus source offset is constant."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The record at mirror offset t is the source's record at source + t - target.

    That is said for `count` records; it holds beyond them as long as no other interval begins. `source_id` tells
    incarnations of the source topic apart (empty where a broker has no topic ids). `foreign_offsets_before` is how many
    offsets of the mirror before it hold no records of ours, but those of others, or markers that fill a gap: the
    sequence numbers of ours do not count them. `fill`: what the mirror holds before it was written only to get there,
    or is gone from the source as well, and is cut off. `decided`: at this mirror offset it was decided, whatever stands
    before it, to go on from that source offset, and then this was planned. One without records is the decision itself.
    """

    target: int
    source: int
    count: int = 0
    source_id: str = ""
    foreign_offsets_before: int = 0
    fill: bool = False
    decided: int = field(default=-1, compare=False)

    @property
    def end(self) -> int:
        return self.target + self.count

    @property
    def kept(self) -> bool:
        """Whether the mirror's offsets are the source's here."""
        return self.source == self.target

    @property
    def decision(self) -> int:
        """The source offset from which on it was decided to go on here; -1 if nothing was."""
        return self.source if self.count == 0 else self.decided

    def source_of(self, target: int) -> int:
        return self.source + target - self.target

    def part(self, start: int, end: int) -> "Interval":
        fill = self.fill and start == self.target
        decided = self.decision if start == self.target else -1
        return Interval(
            start, self.source_of(start), end - start, self.source_id, self.foreign_offsets_before, fill, decided
        )
