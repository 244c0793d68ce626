"""`heliograph status`, as an operator sees it."""

import json
from pathlib import Path
from typing import Any

from logs import Pair, some_records, until
from running.command import heliograph, in_process, kill, start


def test_the_status_tells_totals_states_events_and_what_is_stopped(
    pair: Pair, topic: str, properties: Path, tmp_path: Path
) -> None:
    for name in (topic, f"{topic}-lost", f"{topic}-foreign"):
        pair.a.create(name)
        pair.a.write(name, some_records(50))
    assert heliograph("run", properties, "--until-caught-up").returncode == 0
    pair.b.write(f"A.{topic}-foreign", some_records(1))
    pair.a.write(f"{topic}-lost", some_records(40))
    pair.a.delete_before(f"{topic}-lost", 0, 70)
    log = tmp_path / "log"
    process = start("run", properties, log=log)
    try:
        until(lambda: _flow(properties).get("states") == {"caught-up": 2, "stopped": 1}, log.read_text)
        seen = heliograph("status", properties, "--json")
        (flow,) = json.loads(seen.stdout)
        assert flow["running"]
        assert seen.returncode == 1  # a partition is stopped
        assert (flow["mirrors"], flow["partitions"], flow["records"]) == (3, 3, 20)
        assert (flow["events"], flow["records_of_events"]) == ({"data-loss": 1}, {"data-loss": 20})
        (refusal,) = flow["refusals"]
        assert (refusal["reason"], refusal["target_offset"]) == ("foreign-writer", 51)
        shown = heliograph("status", properties, COLUMNS="200")
        assert "data-loss: 1 time (20 records)" in shown.stdout
        assert "foreign-writer" in shown.stdout
        text = log.read_text()
        assert text.count("20 records from 50 on were deleted before they were copied") == 1
        assert text.count("another producer writes to this mirror") == 1
    finally:
        kill(process)


def _flow(properties: Path) -> dict[str, Any]:
    (flow,) = json.loads(in_process("status", properties, "--json").stdout)
    return dict(flow) if flow.get("running") else {}


def test_the_status_of_what_does_not_run_says_so(properties: Path) -> None:
    properties.write_text(
        properties.read_text().replace("clusters = A, B", "clusters = N, B").replace("A.", "N.").replace("A->", "N->")
    )
    seen = heliograph("status", properties)
    assert seen.returncode == 1
    assert "N->B: not running" in seen.stdout
    assert heliograph("status", properties.with_name("none")).returncode == 2
