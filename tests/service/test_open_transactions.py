"""A transaction that is never ended blocks a partition, although its lag is 0: it is shown."""

import asyncio
import json
import time
import uuid
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaProducer
from rich.console import Console

from copying.lease import only
from fake_clock import FakeClock
from heliograph.cli.status import _details
from heliograph.copy.counts import Counts
from heliograph.copy.signals import Report
from heliograph.copy.work import Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.flow_status import from_json, to_json
from heliograph.service.stalled import StalledPartitions
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.open_transactions import open_transactions
from logs import Pair, on, some_records
from monitoring.test_troubleshooting import blocks, same
from service.runner import running, until


def test_an_open_transaction_is_shown_until_it_ends(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heliograph.service.stalled.STALLED_AFTER", 1.0)
    monkeypatch.setattr("heliograph.service.status_writer._STATUS_EVERY", 0.2)
    caplog.set_level("INFO")
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    producer: Any = KafkaProducer(
        bootstrap_servers=pair.a.bootstrap, transactional_id=uuid.uuid4().hex, transaction_timeout_ms=600_000
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0).get()
    pair.a.write(topic, some_records(5))
    (transaction,) = on(pair.a, lambda client: _describe(client, topic))[topic, 0]
    assert transaction.start == 10
    flow = only(pair.flow(), topic)

    async def main() -> None:
        async with running(flow) as runner:
            await until(lambda: len(runner.view.status().stalled) == 1)
            (stalled,) = runner.view.status().stalled
            assert (stalled.offset, stalled.count, stalled.producer_id) == (10, 6, transaction.producer_id)
            assert abs(stalled.since - time.time()) < 600
            assert runner.view.status().lag == 0
            assert runner.view.open_for >= 1.0
            status = runner.view.status()
            assert from_json(json.loads(json.dumps(to_json(status)))) == status
            console = Console(width=400, record=True)
            _details(console, status)
            assert f"of producer {transaction.producer_id} is open" in console.export_text()
            await asyncio.to_thread(pair.a.write, topic, some_records(2))
            await until(lambda: [stalled.count for stalled in runner.view.status().stalled] == [8])
            await asyncio.to_thread(producer.commit_transaction)
            await until(lambda: [at.source for at in runner.view.positions().values()] == [19])
            await until(lambda: runner.view.status().stalled == () and runner.view.open_for == 0)

    asyncio.run(main())
    producer.close()
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")
    (message,) = [record.message for record in caplog.records if "cannot be read beyond" in record.message]
    assert same(message.replace(topic, "orders")) == same(blocks()["A transaction hangs"])
    assert any("the transaction has ended" in record.message for record in caplog.records)


async def _describe(client: ClusterClient, topic: str) -> Any:
    return await open_transactions(client, (await client.metadata([topic])).topics, [(topic, 0)])


def test_transactions_that_end_in_time_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, "heliograph.service.stalled")
    partition = MirrorPartition("orders", "A.orders", 0)
    known = StalledPartitions("A->B")
    at = Progress(Position(10, 10), 10, high_watermark=16)
    for end in (10, 12, 14):
        known.note({partition: replace(at, source_end=end)})
        clock.now += 50.0
        assert known.seconds() == 50.0
    known.note({partition: replace(at, source_end=16)})
    assert known.seconds() == 0.0


def test_reports_have_the_high_watermark_and_those_without_it_are_read() -> None:
    waits, well = (MirrorPartition(name, f"A.{name}", 0) for name in ("waits", "well"))
    changed = {
        waits: Progress(Position(10, 10), 10, high_watermark=16),
        well: Progress(Position(5, 5), 5, high_watermark=5),
    }
    key, value = Report("lease", 0, 0, Counts(), changed, ()).to_record()
    assert Report.from_record(key, value).changed == changed
    fields = json.loads(value)
    del fields["open"]
    before = Report.from_record(key, json.dumps(fields).encode()).changed
    assert [at.high_watermark for at in before.values()] == [10, 5]
