"""One interval: a range of a mirror partition where mirror offset minus source offset is constant."""

from dataclasses import dataclass, field


# Nobody changes one, but creating a frozen one takes seven times as long, and compacted topics have millions.
@dataclass(slots=True, order=True, unsafe_hash=True)
class Interval:
    """The record at mirror offset t is the source's record at source + t - target.

    That is planned for `count` records, and holds beyond them until another interval begins.

    - `source_id`: topic id of the source, empty where a broker has no topic ids. Recreated topics have another.
    - `foreign_offsets_before`: how many offsets of the mirror before it hold no records of ours, but those of others or
      markers that fill a gap. Our sequence numbers do not count them.
    - `fill`: what the mirror has before it was written only to get there, or is gone from the source, and is deleted.
    - `decided`: the source offset from which it was decided to continue at this mirror offset, regardless of what is
      before it, before this interval was planned. An interval without records is the decision itself.
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
        """Whether the mirror has the source's offsets."""
        return self.source == self.target

    @property
    def decision(self) -> int:
        """The source offset from which it was decided to continue here; -1 if nothing was decided."""
        return self.source if self.count == 0 else self.decided

    def source_of(self, target: int) -> int:
        return self.source + target - self.target

    def part(self, start: int, end: int) -> "Interval":
        fill = self.fill and start == self.target
        decided = self.decision if start == self.target else -1
        return Interval(
            start, self.source_of(start), end - start, self.source_id, self.foreign_offsets_before, fill, decided
        )
