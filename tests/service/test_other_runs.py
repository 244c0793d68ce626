"""Two processes that run the same flow notice each other; one that takes over from another is not noticed."""

import asyncio
import json
import logging
from dataclasses import replace

import pytest
from rich.console import Console

from copying.lease import only
from fake_clock import FakeClock
from heliograph.cli.status import _details
from heliograph.service.flow_status import from_json, to_json
from heliograph.service.other_runs import OtherRuns
from heliograph.wire.records import Record
from logged import lines_of
from logs import Pair
from monitoring.test_troubleshooting import blocks
from service.runner import running, until


def _status(run_id: str, second: float) -> Record:
    fields = {"name": "A->B", "run_id": run_id, "host": "worker-2"}
    return Record(0, int(1_800_000_000_000 + second * 1000), b"status", json.dumps(fields).encode())


def test_another_run_is_reported_once_and_so_is_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = FakeClock(monkeypatch, "heliograph.service.other_runs", now=0.0)
    runs = OtherRuns("A->B", "mine", 5.0)
    theirs = "1f0c2a9b"
    runs.apply([_status("mine", 0), _status(theirs, 1), _status("mine", 5)])
    assert runs.running() == ()  # it may be its last status
    runs.apply([_status(theirs, 6.1)])
    (other,) = runs.running()
    assert (other.run_id, other.host, other.since) == (theirs, "worker-2", 1_800_000_001)
    assert lines_of(caplog, "heliograph.service.other_runs") == [("WARNING", f"A->B: {other}")]
    assert f"A->B: {other}" == blocks()["Two processes run one flow"]
    clock.now = 19.0
    runs.apply([_status(theirs, 20.0)])
    assert runs.running() == (other,)
    clock.now = 60.0
    assert runs.running() == ()
    assert lines_of(caplog, "heliograph.service.other_runs")[1:] == [
        ("INFO", f"A->B: the other process (run {theirs}) no longer runs this flow")
    ]
    runs.apply([_status(theirs, 80.0)])
    assert runs.running() == ()  # it has to write twice again


def test_a_status_without_a_run_id_is_that_of_another_run() -> None:
    runs = OtherRuns("A->B", "mine", 5.0)
    runs.apply([Record(0, second * 1000, b"status", b'{"name": "A->B"}') for second in (1, 7)])
    assert [other.run_id for other in runs.running()] == [""]


def test_two_processes_that_run_one_flow_notice_each_other(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heliograph.service.status_writer._STATUS_EVERY", 0.3)
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    flow = replace(flow, source=replace(flow.source, alias="two-runs"))

    async def main() -> None:
        async with running(flow, "before") as before:
            await until(lambda: len(before.view.positions()) == 1)
        async with running(flow, "first") as first:
            await until(lambda: len(first.view.positions()) == 1)
            assert first.view.status().other_runs == ()
            async with running(flow, "second") as second:
                await until(lambda: [other.run_id for other in first.view.status().other_runs] == ["second"])
                await until(lambda: [other.run_id for other in second.view.status().other_runs] == ["first"])
                status = second.view.status()
            assert from_json(json.loads(json.dumps(to_json(status)))) == status
            console = Console(width=300, record=True)
            _details(console, status)
            assert "another process (run first on " in console.export_text()
            await until(lambda: first.view.status().other_runs == ())

    asyncio.run(main())
    warnings = [record.message for record in caplog.records if "as well, since" in record.message]
    assert {warning.split("(")[1].split()[1] for warning in warnings} == {"first", "second"}
