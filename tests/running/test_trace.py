"""`heliograph run --trace`: what leases did, for Perfetto."""

import json
from pathlib import Path

import pytest

from heliograph.copy import tracing
from logs import Pair, some_records
from running.command import heliograph


def test_a_trace_has_the_fetches_appends_and_leases_of_a_run(
    pair: Pair, topic: str, properties: Path, tmp_path: Path
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(500))
    trace = tmp_path / "trace.json"
    done = heliograph("run", properties, "--until-caught-up", "--trace", trace)
    assert done.returncode == 0, done.stderr
    events = json.loads(trace.read_text().rstrip(",\n") + "]")
    began = {event["id"]: event for event in events if event["ph"] == "b"}
    ended = {event["id"]: event for event in events if event["ph"] == "e"}
    assert began.keys() == ended.keys()
    assert all(began[number]["ts"] <= ended[number]["ts"] for number in began)
    kinds = {event["cat"] for event in began.values()}
    assert kinds >= {"lease", "fetch", "append"}
    assert sum(event["args"]["bytes"] for event in began.values() if event["cat"] == "fetch") > 500


def test_a_trace_that_cannot_be_written_is_an_error_before_anything_starts(properties: Path, tmp_path: Path) -> None:
    done = heliograph("run", properties, "--until-caught-up", "--trace", tmp_path / "missing" / "trace.json")
    assert done.returncode == 2
    assert "--trace" in done.stderr


def test_a_trace_that_cannot_be_written_any_more_does_not_end_a_lease(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("/dev/full", "/nowhere/trace.json"):
        monkeypatch.setenv(tracing.FILE_VARIABLE, path)
        with tracing.traced_lease("A->B", "lease"):
            for _ in range(1000):
                tracing.span("fetch", "fetch", 0.0, bytes=1)
            assert not tracing.is_tracing()
        assert "cannot be written" in caplog.messages[-1]
