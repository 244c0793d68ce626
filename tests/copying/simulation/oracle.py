"""What must be true of a mirror and its ledger, by the records' values alone."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from copying.simulation.world import World


@dataclass
class History:
    """What has happened in a schedule, as far as it changes what must hold."""

    origins: dict[bytes, int] = field(default_factory=dict)  # value -> source offset, the last one
    deleted: bool = False  # the source's beginning
    compacted: bool = False
    overlapped: bool = False  # two copiers, or what a dead one had sent and its successor
    mirror_truncated: bool = False
    source_truncated: bool = False
    expired: bool = False
    foreign: bool = False
    limited: bool = False
    checked: tuple[object, ...] = ()


def check_any_time(world: World, history: History) -> None:
    """Whatever runs now."""
    if history.source_truncated or history.expired or history.checked == world.fingerprint():
        return
    history.checked = world.fingerprint()
    copied = [(record.offset, record.value) for record in world.mirror.visible()]
    _check_order(copied, history)
    _check_translations(world, copied, history, exact=False)


def check_settled(world: World, history: History) -> None:
    """Everything is copied."""
    copied = [(record.offset, record.value) for record in world.mirror.visible()]
    present = [record.value for record in world.log.visible()]
    assert _is_within(present, [value for _offset, value in copied]), f"of {present} the mirror has only {copied}"
    if history.source_truncated or history.expired:
        _check_readers(world, [value for _offset, value in copied])
        _check_repeated(world, [value for _offset, value in copied])
    else:
        _check_order(copied, history)
        _check_translations(world, copied, history, exact=not history.foreign)


def check_refused(world: World, history: History, reason: str) -> None:
    """A partition that has stopped has a reason to."""
    assert reason in _reasons(world, history), f"refused: {reason}"


def _reasons(world: World, history: History) -> set[str]:
    policies = world.choices.policies
    reasons: set[str] = set()
    if history.deleted and policies.data_loss != "continue":
        reasons.add("data-loss")
    if history.expired and policies.foreign_writer != "continue":
        reasons.add("out-of-sequence")
    if history.foreign:
        reasons |= {"foreign-writer", "unknown-origin"}
    if history.source_truncated:
        reasons |= {"not-a-copy"} | ({"source-truncated", "data-loss"} if policies.data_loss != "continue" else set())
    if history.overlapped and (history.compacted or history.deleted):
        reasons.add("not-a-copy")  # the two have read different things
    if history.limited and not world.choices.may_raise:
        reasons |= {"too-large", "refused-by-target"}
    return reasons


def _check_order(copied: list[tuple[int, bytes]], history: History) -> None:
    origins = [history.origins[value] for _offset, value in copied if value in history.origins]
    assert all(left < right for left, right in pairwise(origins)), f"not in order: {copied}"


def _check_translations(world: World, copied: list[tuple[int, bytes]], history: History, exact: bool) -> None:
    """A consumer of the source that resumes at the mirror misses nothing, and with `exact` reads nothing again."""
    by_offset = [(history.origins[value], offset) for offset, value in copied if value in history.origins]
    for source, target in world.translations().items():
        right = next((offset for origin, offset in by_offset if origin >= source), world.mirror.end)
        said = f"source offset {source} becomes {target} instead of {right}, in {by_offset}"
        assert target is None or target <= right, f"too late: {said}"
        if exact:
            assert target == right or not copied, said


def _check_readers(world: World, copied: list[bytes]) -> None:
    """As above, for a source that was truncated and may hold records in other places than before."""
    for source, target in world.translations().items():
        unread = [record.value for record in world.log.visible() if record.offset >= source]
        begin = 0 if target is None else target - world.mirror.start
        assert _is_within(unread, copied[begin:]), f"source offset {source} becomes {target}: too late for {unread}"


def _check_repeated(world: World, copied: list[bytes]) -> None:
    repeated = sum(count - 1 for value, count in Counter(copied).items() if value != b"theirs")
    reported = sum(notice.count for notice in world.notices if notice.kind in ("source-truncated", "copied-twice"))
    assert repeated <= reported, f"{repeated} records are repeated, and {reported} were reported: {world.notices}"


def _is_within(some: list[bytes], all_of_them: list[bytes]) -> bool:
    """Whether they are all there, in their order."""
    rest = iter(all_of_them)
    return all(value in rest for value in some)
