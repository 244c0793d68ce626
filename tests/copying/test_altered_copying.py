"""Recovery of mirrors whose position was set by an operator: what was skipped stays skipped, and nothing else is."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from copying.simulated import LENIENT, OURS, Logs, values_of
from heliograph.copy.altered_position import altered_position
from heliograph.copy.position import PartitionFacts

VALUES = [b"r%d" % number for number in range(100)]


@dataclass
class AlteredLogs:
    """`skipped` are source offsets that need not be copied."""

    logs: Logs = field(default_factory=Logs)
    skipped: set[int] = field(default_factory=set)

    def set(self, source: int) -> None:
        logs = self.logs
        facts = PartitionFacts(0, logs.source_end, 0, logs.mirror_end, "id", "m")
        altered = altered_position(logs.intervals, facts, LENIENT, source)
        if altered.decision is not None:
            logs.intervals.put([altered.decision])
        if altered.source > altered.before:
            self.skipped |= set(range(altered.before, altered.source))
        else:
            self.skipped -= set(range(altered.source, altered.before))

    def cut(self, offset: int) -> None:
        self.logs.cut(offset)
        self.skipped = {skipped for skipped in self.skipped if skipped < offset}

    def check(self) -> None:
        """A reader at any source offset that resumes in the mirror reads all that was not skipped, in order."""
        originals = [(offset, value) for offset, value in values_of(self.logs.source) if offset not in self.skipped]
        copies = list(values_of(self.logs.mirror))
        for offset in range(self.logs.source_end + 1):
            target = self.logs.intervals.target_of(offset, "id", self.logs.mirror_end)
            assert target is not None
            rest = iter([value for at, value in copies if at >= target])
            missing = [value for at, value in originals if at >= offset and value not in rest]
            assert not missing, f"source offset {offset} becomes {target}, which is too late for {missing}"


def _copied(count: int) -> AlteredLogs:
    altered = AlteredLogs()
    altered.logs.write(*VALUES[:count])
    altered.logs.copy()
    return altered


def _mirrored(altered: AlteredLogs) -> list[bytes]:
    return [value for _offset, value in values_of(altered.logs.mirror)]


def test_records_are_skipped_and_copied_again_as_asked() -> None:
    altered = _copied(20)
    logs = altered.logs
    logs.write(*VALUES[20:40])
    altered.set(25)
    assert logs.recover().counts == {}
    logs.copy()
    assert _mirrored(altered) == [*VALUES[:20], *VALUES[25:40]]
    altered.check()
    altered.set(10)
    assert logs.recover().counts == {}
    logs.copy()
    assert _mirrored(altered) == [*VALUES[:20], *VALUES[25:40], *VALUES[10:40]]
    altered.check()


def test_what_was_skipped_stays_skipped_when_the_source_is_truncated_later() -> None:
    altered = _copied(20)
    logs = altered.logs
    logs.write(*VALUES[20:40])
    altered.set(25)
    logs.recover()
    logs.copy()
    altered.cut(35)
    logs.write(b"new")
    found = logs.recover(cut_at=35)
    assert found.position is not None
    assert (found.position.source, found.counts) == (35, {"source-truncated": 5})
    logs.copy()
    assert _mirrored(altered) == [*VALUES[:20], *VALUES[25:40], b"new"]
    altered.check()


def test_what_others_write_before_copying_resumes_does_not_undo_it() -> None:
    for source in (25, 10):
        altered = _copied(20)
        logs = altered.logs
        logs.write(*VALUES[20:40])
        altered.set(source)
        logs.append([b"theirs"], 0, producer=5)
        found = logs.recover()
        assert found.position is not None
        assert (found.position.source, found.counts) == (source, {"foreign-writer": 1})
        logs.copy()
        assert _mirrored(altered) == [*VALUES[:20], b"theirs", *VALUES[source:40]]
        altered.check()


def test_a_batch_that_lands_after_the_position_was_set_is_noticed() -> None:
    """Of a copier that should have ended: it holds other records than the ledger says."""
    altered = _copied(20)
    logs = altered.logs
    logs.write(*VALUES[20:40])
    altered.set(10)
    logs.append(VALUES[20:25], 20)
    logs.recover()
    logs.copy()
    altered.skipped.clear()
    altered.check()


_step = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 8)),
    st.tuples(st.just("set"), st.integers(0, 100)),
    st.tuples(st.just("copy"), st.just(0)),
    st.tuples(st.just("cut"), st.integers(0, 100)),
    st.tuples(st.just("foreign"), st.integers(1, 2)),
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.lists(_step, max_size=12))
def test_nothing_but_what_was_skipped_is_left_out(steps: list[tuple[str, int]]) -> None:
    altered = _copied(5)
    logs = altered.logs
    written, cut_at = 5, None
    for what, number in (*steps, ("copy", 0)):
        if what == "write":
            logs.write(*(b"r%d" % (written + more) if more % 3 else None for more in range(number)))
            written += number
        elif what == "set" and cut_at is None and logs.mirror[-1].producer_id == OURS:  # else it is refused
            altered.set(number * logs.source_end // 100)
        elif what == "cut":
            offset = 1 + number * (logs.source_end - 1) // 100
            cut_at = offset if cut_at is None else min(cut_at, offset)
            altered.cut(offset)
        elif what == "foreign":
            logs.append([b"theirs"] * number, 0, producer=5)
        elif what == "copy":
            logs.recover(LENIENT, cut_at=cut_at)
            cut_at = None
            logs.copy()
            altered.check()
