"""The rule of recovery: from the mirror's end to the source offset that comes next. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import Position

Event = tuple[str, int, str]
UNKNOWN_ORIGIN = "unknown-origin"
NOT_KEPT = "offsets-not-kept"


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What was just read from both clusters about one partition.

    `has_earlier_mirror`: records were copied to a mirror of this name that was deleted. `is_sure`: what looks like a
    truncated source has looked so several times, so it is not a leader that lags behind. `most_filler`: how many
    offsets may be filled so that the mirror has the source's offsets; None where it need not have them.
    """

    source_start: int
    source_end: int
    mirror_start: int
    mirror_end: int
    source_id: str
    mirror_id: str
    has_earlier_mirror: bool = False
    is_sure: bool = False
    last_position: Position | None = None  # the last one that this run has seen
    from_the_end: bool = False  # a mirror that never existed begins at the source's end
    most_filler: int | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """Resume from here. `new` is the interval to write ahead, where one begins; `foreign_offsets_before` is as in
    Interval.

    `is_diverged`: the source no longer has what was copied last, so the position must be searched. `is_decided`: how to
    continue from the mirror's end was decided, recorded and reported before. `preserves_offsets`: the mirror has the
    source's offsets; where it ends before the position, it is filled up first. `events`: what was skipped, each with a
    keyword, a number of records and a sentence.
    """

    position: Position
    new: Interval | None = None
    foreign_offsets_before: int = 0
    is_diverged: bool = False
    is_decided: bool = False
    preserves_offsets: bool = False
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocked:
    """This partition cannot be copied. `final` is false where a leader that lags behind could look the same."""

    reason: str
    text: str
    source_offset: int
    final: bool = True
    is_suspicious: bool = True  # whether it is permanent if it keeps coming back


@dataclass(frozen=True, slots=True)
class _MirrorEnd:
    """What the intervals say about the mirror's end."""

    pending_fill: Interval | None  # the mirror is still being filled up to here
    interval: Interval | None = None  # the one that holds at the mirror's end; None: nothing is known
    is_taken_over: bool = False  # another tool has copied all that the mirror holds
    source: int = 0  # the source offset that comes next
    foreign_offsets_before: int = 0
    is_decided: bool = False
    has_source_offsets: bool = False  # the next record has the same offset on both sides

    @property
    def source_id(self) -> str:
        assert self.interval is not None
        return self.interval.source_id


def _mirror_end(intervals: Intervals, facts: PartitionFacts) -> _MirrorEnd:
    # The last record's, which is in the mirror: what was planned after it may never have been appended.
    last = intervals.covering(max(facts.mirror_end - 1, 0))
    ahead = intervals.after(facts.mirror_end)
    pending_fill = ahead if ahead is not None and ahead.fill and ahead.source_id == facts.source_id else None
    is_taken_over = last is None and facts.mirror_end > 0
    # Without an own record: others may have filled the mirror up to here, and it was decided how to continue.
    interval = last if last is not None else intervals.beginning(facts.mirror_end)
    if pending_fill is not None or interval is None:
        return _MirrorEnd(pending_fill)
    source, foreign = (
        _next_source(intervals, interval, facts.mirror_end),
        intervals.foreign_offsets_at(facts.mirror_end),
    )
    beginning = intervals.beginning(facts.mirror_end)
    is_decided = False
    if beginning is not None and beginning.source_id == facts.source_id:
        is_decided = is_taken_over or not (beginning.kept and interval.kept)  # or it only says that a gap ends here
        interval, source, foreign = beginning, beginning.source, beginning.foreign_offsets_before
    has_source_offsets = source == facts.mirror_end
    seen = facts.last_position
    if (
        # Offsets after the last copied record that this run has found to hold no records are not read again.
        seen is not None
        and not (has_source_offsets and facts.most_filler is not None)
        and seen.target == facts.mirror_end
        and source < seen.source <= facts.source_end
    ):
        source = seen.source
    return _MirrorEnd(None, interval, is_taken_over, source, foreign, is_decided, has_source_offsets)


def _next_source(intervals: Intervals, interval: Interval, mirror_end: int) -> int:
    """The source offset after the last copied record, by the interval of the mirror's last offset. What others have
    written before the next interval is no copy: a mirror that was truncated can end there. A gap that is filled is as
    wide on both sides, and counts."""
    following = intervals.after(mirror_end - 1)
    if following is None or following.source - following.target == interval.source - interval.target:
        return interval.source_of(mirror_end)
    return interval.source_of(max(interval.target, intervals.own_end(mirror_end)))


def next_position(intervals: Intervals, facts: PartitionFacts, policies: Policies) -> Resume | Blocked:
    """The source offset that comes next. The first case in `_CASES` that applies decides."""
    end = _mirror_end(intervals, facts)
    return next(decision for case in _CASES if (decision := case(facts, end, policies)) is not None)


def _filling_is_unfinished(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Resume | None:
    fill = end.pending_fill
    if fill is None:
        return None
    return _begin(facts, max(fill.source, facts.source_start), fill.foreign_offsets_before, keep=True, fill=True)


def _origin_is_unknown(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Blocked | None:
    if end.interval is not None or facts.mirror_end == 0:
        return None
    how = (
        "if MirrorMaker 2 on a Connect cluster has written them, give the file of its worker (--worker) or set "
        "heliograph.mm2.offsets.topic; else delete the mirror to copy it again, or use another mirror name"
    )
    if facts.has_earlier_mirror:
        how = "it was deleted and created again, perhaps while a batch was in flight; delete it once more"
    text = f"the mirror holds {facts.mirror_end} records that the ledger has no entry for; {how}"
    return Blocked(UNKNOWN_ORIGIN, text, facts.source_start)


def _mirror_was_recreated(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Resume | None:
    if end.interval is not None or not facts.has_earlier_mirror:
        return None
    event = ("mirror-recreated", 0, "the mirror was deleted; it is copied again from the source's start")
    return _begin(facts, facts.source_start, 0, event, keep=True)


def _mirror_is_new(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Resume | None:
    if end.interval is not None:
        return None
    return _begin(facts, facts.source_end if facts.from_the_end else facts.source_start, 0, keep=True)


def _earlier_source_left_nothing(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Resume | None:
    assert end.interval is not None
    if end.source_id == facts.source_id or not facts.mirror_end == end.interval.target == 0:
        return None
    return _begin(facts, facts.source_start, 0, keep=True)


def _source_was_recreated(facts: PartitionFacts, end: _MirrorEnd, policies: Policies) -> Resume | Blocked | None:
    if end.source_id == facts.source_id:
        return None
    text = "the source topic was deleted and created again; what the mirror holds came from the earlier one"
    if policies.recreated_topic != CONTINUE:
        return Blocked("recreated-topic", text, end.source)
    event = ("recreated-topic", 0, f"{text}; copying continues with the new one")
    return _begin(facts, facts.source_start, end.foreign_offsets_before, event)


def _source_deleted_records(facts: PartitionFacts, end: _MirrorEnd, policies: Policies) -> Resume | Blocked | None:
    if end.source >= facts.source_start:
        return None
    lost = lost_records(end.source, facts)
    if policies.data_loss != CONTINUE:
        return Blocked("data-loss", lost[2], end.source)
    return _begin(facts, facts.source_start, end.foreign_offsets_before, lost, keep=end.has_source_offsets)


def _transaction_is_open(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Blocked | None:
    """The mirror was copied by a tool that reads uncommitted records."""
    if end.source <= facts.source_end or not end.is_taken_over:
        return None
    text = f"readers of the source reach offset {facts.source_end} only, but the mirror holds all before {end.source}"
    return Blocked("open-transaction", text, end.source, final=False, is_suspicious=False)


def _source_looks_truncated(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Blocked | None:
    if end.source <= facts.source_end or facts.is_sure:
        return None
    text = f"the source ends at {facts.source_end}, but the mirror already holds everything up to {end.source - 1}"
    return Blocked("source-truncated", text, end.source, final=False)


def _continue(facts: PartitionFacts, end: _MirrorEnd, _policies: Policies) -> Resume:
    events: tuple[Event, ...] = ()
    wants_offsets = facts.most_filler is not None
    if wants_offsets and not end.has_source_offsets and facts.last_position is None:  # reported once in a run
        events = (not_kept("the mirror has other offsets than the source"),)
    return Resume(
        Position(end.source, facts.mirror_end),
        None,
        end.foreign_offsets_before,
        end.source > facts.source_end,
        end.is_decided,
        end.has_source_offsets and wants_offsets,
        events,
    )


_Case = Callable[[PartitionFacts, _MirrorEnd, Policies], Resume | Blocked | None]
# From the fifth on, an interval is known.
_CASES: tuple[_Case, ...] = (
    _filling_is_unfinished,
    _origin_is_unknown,
    _mirror_was_recreated,
    _mirror_is_new,
    _earlier_source_left_nothing,
    _source_was_recreated,
    _source_deleted_records,
    _transaction_is_open,
    _source_looks_truncated,
    _continue,
)


def lost_records(source: int, facts: PartitionFacts) -> Event:
    """The event for a source that has deleted what comes next."""
    lost = facts.source_start - source
    text = f"the source begins at {facts.source_start}: {lost} records from {source} on were deleted before they were "
    return "data-loss", lost, f"{text}copied"


def not_kept(what: str) -> Event:
    """The event for a mirror that cannot have the source's offsets from here on."""
    return NOT_KEPT, 0, f"{what}; from here on offsets are translated instead of preserved"


def _begin(
    facts: PartitionFacts, source: int, shift: int, *events: Event, keep: bool = False, fill: bool = False
) -> Resume:
    """Begin a new interval at the mirror's end. With `keep`, the mirror may have the source's offsets if that is
    wanted; with `fill`, it was being filled up for that."""
    end, missing, most = facts.mirror_end, source - facts.mirror_end, facts.most_filler
    at = Position(source, end)
    if keep and most is not None:
        if 0 <= missing <= most:
            new = Interval(source, source, 0, facts.source_id, shift, fill or missing > 0)
            return Resume(at, new, shift, preserves_offsets=True, events=events)
        limit = f"{most} may be filled up" if most else "its records cannot be deleted, so it cannot be filled up"
        many = f"the mirror ends {missing} offsets before the source's {source}, and {limit}"
        few = f"the source begins at offset {source}, and the mirror ends at {end} already"
        events = (*events, not_kept(many if missing > 0 else few))
    return Resume(at, Interval(end, source, 0, facts.source_id, shift, fill), shift, events=events)
