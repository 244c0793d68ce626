"""One interval: a stretch of a mirror partition where mirror offset minus source offset is constant."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The record at mirror offset t is the source's record at source + t - target.

    That is said for `count` records; it holds beyond them as long as no other interval begins. `source_id` tells
    incarnations of the source topic apart (empty where a broker has no topic ids). `shift` is how many offsets of the
    mirror before it hold no records of ours, but those of others, or markers that fill a gap: the sequence numbers of
    ours do not count them. `fill`: what the mirror holds before it was written only to get there, or is gone from the
    source as well, and is cut off. `decided`: it was decided to go on so at this mirror offset, whatever stands before
    it, and then planned; one without records is the decision itself.
    """

    target: int
    source: int
    count: int = 0
    source_id: str = ""
    shift: int = 0
    fill: bool = False
    decided: bool = field(default=False, compare=False)

    @property
    def end(self) -> int:
        return self.target + self.count

    @property
    def kept(self) -> bool:
        """Whether the mirror's offsets are the source's here."""
        return self.source == self.target

    @property
    def is_decision(self) -> bool:
        return self.decided or self.count == 0

    def source_of(self, target: int) -> int:
        return self.source + target - self.target

    def part(self, start: int, end: int) -> "Interval":
        fill = self.fill and start == self.target
        decided = self.is_decision and start == self.target
        return Interval(start, self.source_of(start), end - start, self.source_id, self.shift, fill, decided)
