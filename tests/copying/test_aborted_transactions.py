"""Random transactions of several producers, compacted or not: compiled code and Python copy exactly the committed
records, however the log is cut into responses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copying.simulation.batches import Producer
from copying.simulation.log import Log
from heliograph.copy.classified import Rules
from heliograph.copy.classify import classify
from heliograph.copy.consumer_view import records_in
from heliograph.wire.kernels import loading

_NOW = 1_700_000_000_000

_WRITE, _COMMIT, _ABORT = "write", "commit", "abort"
_steps = st.lists(
    st.tuples(st.sampled_from([_WRITE, _WRITE, _WRITE, _COMMIT, _ABORT]), st.integers(-1, 3), st.integers(1, 3)),
    min_size=1,
    max_size=30,
)


def _log(steps: list[tuple[str, int, int]]) -> Log:
    log, values = Log(), 0
    for what, producer, size in steps:
        if what == _WRITE:
            known = Producer(producer, 0, 0, transactional=True) if producer >= 0 else Producer()
            log.write([_NOW] * size, [b"%d" % (values + at) for at in range(size)], known)
            values += size
        elif producer >= 0:  # a marker may end nothing
            log.finish(producer, what == _COMMIT, _NOW)
    for producer in list(log.open):
        log.finish(producer, producer % 2 == 0, _NOW)
    return log


def _copied(log: Log, start: int, most: int, rules: Rules) -> list[tuple[int, bytes | None]]:
    records: list[tuple[int, bytes | None]] = []
    epoch = -1
    while start < log.end:
        batches = log.read(start, log.end, most)
        begin, end = batches[0].base_offset, batches[-1].next_offset
        aborted = [(producer, first) for producer, first, marker in log.aborted if first < end and marker >= begin]
        data = b"".join(bytes(batch.data) for batch in batches)
        classified = classify(data, start, epoch, rules, reversed(aborted))
        assert classified.problem is None
        assert classified.next_source == end
        for outgoing in classified.outgoing:
            assert outgoing.batch.has_valid_checksum() or outgoing.is_reencoded
            records += [(record.offset, record.value) for record in records_in(outgoing)]
        start, epoch = classified.next_source, classified.epoch
    return records


@settings(max_examples=300, deadline=None)
@given(
    _steps,
    st.sampled_from([150, 600, 1 << 20]),
    st.integers(0, 5),
    st.sampled_from([0, 300, 1 << 17]),
    st.sets(st.integers(0, 40)),
    st.booleans(),
)
def test_exactly_the_committed_records_are_copied(
    steps: list[tuple[str, int, int]], most: int, start: int, join: int, lost: set[int], leave_empty: bool
) -> None:
    assert loading.load()
    log = _log(steps)
    log.compact(lambda offset: offset not in lost, leave_empty)
    expected = [(record.offset, record.value) for record in log.visible() if record.offset >= start]
    assert _copied(log, start, most, Rules(join_up_to=join)) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_join", None)
        assert _copied(log, start, most, Rules(join_up_to=join)) == expected
