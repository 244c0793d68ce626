"""A chunk with thousands of gaps, from the fetched bytes to the ledger's pages and back."""

import random

import pytest

from copying.simulation.log import Log
from heliograph.copy.classified import Rules
from heliograph.copy.classify import classify
from heliograph.copy.consumer_view import records_in
from heliograph.copy.write_ahead import plan_of
from heliograph.model.columns import Columns
from heliograph.model.intervals import Intervals
from heliograph.model.ledger_records import JournalEntry, Packed, from_index, from_record, to_index, to_record
from heliograph.wire.kernels import loading


@pytest.mark.parametrize("code", ["compiled", "python"])
def test_every_offset_of_a_chunk_with_thousands_of_gaps_translates(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loading.load()
    if code == "python":
        monkeypatch.setattr(loading, "_join", None)
    log, rng = Log(), random.Random(1)
    for _ in range(100):
        log.write([1_700_000_000_000] * 100, [b"%d" % rng.getrandbits(20) for _ in range(100)])
    lost = {offset for offset in range(log.end) if rng.random() < 0.5}
    log.compact(lambda offset: offset not in lost, leave_empty=False)
    ledger = Intervals(page_size=500)
    target, expected = 0, {}
    for half in (log.batches[:50], log.batches[50:]):
        data = b"".join(bytes(batch.data) for batch in half)
        classified = classify(data, half[0].base_offset, -1, Rules(join_up_to=20_000))
        plan = plan_of(classified.outgoing, target, "s", 0)
        assert isinstance(plan, Columns)
        assert not ledger.agree(plan)
        ledger.put(from_record(*to_record(JournalEntry(("t", 0), "m", plan), "author", 0)).intervals)
        assert ledger.agree(plan)
        for outgoing in classified.outgoing:
            for record in records_in(outgoing):
                expected[record.offset] = target
                target += 1
    assert sorted(expected) == [record.offset for record in log.visible()]
    packed = Packed(("t", 0), "m", tuple(ledger.packed()), 0, 0)
    for known in (ledger, Intervals(pages=from_index(packed.key, to_index(packed)).pages)):
        assert len(known) > 2000
        for source, copied in expected.items():
            assert known.target_of(source, "s", target) == copied
