"""What is logged as JSON, kept as events, posted to a webhook, and shown by `heliograph top`."""

import asyncio
import json
import logging
import sys
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from heliograph.cli import app
from heliograph.cli.json_log import JsonFormatter
from heliograph.cli.top import Look, frame, seconds
from heliograph.config import ConfigError
from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal
from heliograph.service.events import (
    Event,
    Events,
    FlowEvent,
    LoggedEvent,
    PartitionEvent,
    PartitionNotice,
    PartitionStopped,
    TopicEvent,
    emit,
    flow_scope,
)
from heliograph.service.flow_status import FlowStatus
from heliograph.service.notifier import Notifier, webhook_body
from logged import records_of
from logs import until
from monitoring.conftest import FLOW, LOST, NOT_MIRRORED, SECRET, STOPPED, WELL, Watched, Webhook

PARTITION = MirrorPartition("orders", "A.orders", 3)


def test_every_line_is_an_object_with_what_it_is_about(watched: Watched) -> None:
    lines = [json.loads(line) for line in watched.log.read_text().splitlines()]
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
    (stopped, *_more) = [line for line in lines if line.get("kind") == "unknown-origin"]
    assert stopped["level"] == "ERROR"
    assert (stopped["flow"], stopped["topic"], stopped["partition"]) == (FLOW, STOPPED, 0)
    assert (stopped["source_offset"], stopped["mirror_offset"]) == (0, 1)
    (lost, *_more) = [line for line in lines if line.get("kind") == "data-loss"]
    assert (lost["level"], lost["topic"]) == ("WARNING", LOST)
    assert lost["source_offset"] in watched.lost_before
    assert any(line.get("topic") == NOT_MIRRORED for line in lines)
    assert SECRET not in watched.log.read_text()


def test_events_can_be_asked_for_by_flow_level_and_topic(watched: Watched) -> None:
    def events(query: str) -> list[dict[str, object]]:
        got = watched.api("GET", f"/heliograph/v1/events?limit=1000&{query}")
        assert got.status == 200
        body: list[dict[str, object]] = got.body
        return body

    (lost, *_more) = events(f"topic={LOST}&level=warning&flow={quote(FLOW)}")
    assert (lost["kind"], lost["partition"], lost["level"]) == ("data-loss", 0, "WARNING")
    texts = [str(event["text"]) for event in events("")]
    assert f"{FLOW}: mirror W.{WELL} created with 2 partitions" in texts
    assert any("MirrorSourceConnector is changed" in text for text in texts)
    assert events(f"topic={LOST}&level=ERROR") == []


def test_warnings_and_errors_are_posted_to_the_webhook_though_it_refuses_at_first(watched: Watched) -> None:
    def posted() -> dict[str, str]:
        events = [event for body in watched.webhook.posted for event in body["events"]]
        assert all(event["level"] in ("WARNING", "ERROR") for event in events)
        return {event["kind"]: event["text"] for event in events}

    until(lambda: {"unknown-origin", "data-loss"} <= posted().keys())
    assert watched.webhook.refused == 1
    assert posted()["data-loss"] in "\n".join(body["text"] for body in watched.webhook.posted)
    log = watched.log.read_text()
    assert "events could not be posted to heliograph.notify.webhook and will be tried again: HTTP Error 503" in log


def test_a_webhook_that_is_gone_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    hook = Webhook()
    address = hook.address
    hook.shutdown()
    hook.server_close()
    notifier = Notifier(address, every=0.01, tries=2)
    event = LoggedEvent(0.0, "ERROR", "A->B", "A->B: something")
    for _ in range(5000):
        notifier.notify(event)
    notifier.notify(LoggedEvent(0.0, "INFO", "A->B", "A->B: nothing"))
    until(lambda: "and are given up" in caplog.text)
    notifier.end()
    assert "Connection refused" in caplog.text
    assert SECRET not in caplog.text
    body = webhook_body([event], 4999)
    assert body["text"] == "ERROR 00:00:00 A->B: something\n... and 4999 more"
    assert body["events"][0]["flow"] == "A->B"


def test_a_webhook_that_is_no_address_is_refused_without_showing_it() -> None:
    from config.files import MINIMAL, deployment

    with pytest.raises(ConfigError) as error:
        deployment(f"{MINIMAL}heliograph.notify.webhook = hooks.example.com/{SECRET}\n")
    assert "heliograph.notify.webhook: [hidden] is no address such as https://" in str(error.value)
    read = deployment(f"{MINIMAL}heliograph.notify.webhook = https://hooks.example.com/{SECRET}\n")
    assert read.webhook.endswith(SECRET)
    assert SECRET not in repr(read)
    assert read.warnings == read.notes == ()


@pytest.mark.parametrize(
    ("event", "level", "text", "fields"),
    [
        (
            PartitionStopped("A->B", Refusal(PARTITION, "hole", 7, 5, "so")),
            "ERROR",
            "orders-3 (mirror A.orders-3) stopped at source offset 7, mirror offset 5: so",
            {"topic": "orders", "partition": 3, "source_offset": 7, "mirror_offset": 5, "kind": "hole"},
        ),
        (
            PartitionStopped("A->B", Refusal(PARTITION, "missing", 7, 5, "so", final=False)),
            "WARNING",
            "orders-3 (mirror A.orders-3) is waiting at source offset 7, mirror offset 5: so",
            {"topic": "orders", "partition": 3, "source_offset": 7, "mirror_offset": 5, "kind": "missing"},
        ),
        (
            PartitionNotice("A->B", Notice(PARTITION, "parked", 1, 7, 5, "so")),
            "WARNING",
            "orders-3 (mirror A.orders-3) at source offset 7, mirror offset 5: so",
            {"topic": "orders", "partition": 3, "source_offset": 7, "mirror_offset": 5, "kind": "parked"},
        ),
        (
            PartitionEvent("A->B", PARTITION, "orders-3 is copied again"),
            "INFO",
            "orders-3 is copied again",
            {"topic": "orders", "partition": 3},
        ),
        (
            TopicEvent("A->B", "orders", "topic orders is not mirrored", logging.ERROR),
            "ERROR",
            "topic orders is not mirrored",
            {"topic": "orders"},
        ),
        (FlowEvent("A->B", "lease 2 failed: no memory", logging.ERROR), "ERROR", "lease 2 failed: no memory", {}),
        (FlowEvent("A->B", "lease 2 runs again"), "INFO", "lease 2 runs again", {}),
    ],
    ids=["stopped", "waiting", "notice", "partition", "topic", "flow", "information"],
)
def test_an_event_is_a_log_line_a_json_line_an_entry_of_the_list_and_a_count(
    caplog: pytest.LogCaptureFixture, event: Event, level: str, text: str, fields: dict[str, Any]
) -> None:
    events = Events()
    log = logging.getLogger("heliograph.service.anything")
    log.addHandler(events)
    with caplog.at_level(logging.INFO, "heliograph"):
        emit(log, event)
    log.removeHandler(events)
    (record,) = records_of(caplog, log.name)
    assert (record.levelname, record.getMessage()) == (level, f"A->B: {text}")
    line = json.loads(JsonFormatter().format(record))
    expected = {"level": level, "logger": "heliograph.service.anything", "message": f"A->B: {text}", "flow": "A->B"}
    assert {key: value for key, value in line.items() if key != "time"} == expected | fields
    topic, partition, kind = fields.get("topic", ""), fields.get("partition", -1), fields.get("kind", "")
    assert events.last(5) == [LoggedEvent(record.created, level, "A->B", f"A->B: {text}", topic, partition, kind)]
    assert events.counts == {("A->B", level): 1}


def test_a_plain_line_belongs_to_the_flow_in_whose_scope_it_is_logged_whatever_its_text() -> None:
    events = Events()

    async def log_in_a_task(text: str) -> None:
        events.handle(logging.LogRecord("heliograph.control.x", logging.INFO, "", 1, text, None, None))

    async def main() -> None:
        with flow_scope("A->B"):
            task = asyncio.create_task(log_in_a_task("in scope"))
            with flow_scope("B->C"):
                await log_in_a_task("in an inner scope")
        await log_in_a_task("A->B: not in scope")
        await task

    asyncio.run(main())
    assert {event.text: event.flow for event in events.last(5)} == {
        "in scope": "A->B",
        "in an inner scope": "B->C",
        "A->B: not in scope": "",
    }


def test_the_fields_of_a_plain_line_can_be_given_as_extra() -> None:
    record = logging.makeLogRecord({"msg": "text", "flow": "A->B", "topic": "orders", "partition": 3})
    with flow_scope("B->C"):
        line = json.loads(JsonFormatter().format(record))
    assert line.items() >= {"flow": "A->B", "topic": "orders", "partition": 3}.items()


def test_an_exception_is_in_its_line() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", None, sys.exc_info())
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert json.loads(text)["exception"].endswith("ValueError: two\nlines")
    assert "flow" not in json.loads(text)


def test_a_thousand_events_are_kept() -> None:
    events = Events()
    with flow_scope("A->B"):
        for number in range(1500):
            events.handle(logging.LogRecord("heliograph.service.x", logging.INFO, "", 1, "%d", (number,), None))
            events.handle(logging.LogRecord("heliograph.wire.x", logging.ERROR, "", 1, "%d", (number,), None))
    assert [event.text for event in events.last(2000)] == [f"{number}" for number in range(500, 1500)]
    assert events.counts == {("A->B", "INFO"): 1500}


def test_top_shows_a_running_flow(watched: Watched) -> None:
    done = CliRunner().invoke(app, ["top", "--once", "--rest", watched.api.url], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines), done.stdout
    for shown in (FLOW, "2 stopped", "Busiest mirrors", "Most lagging mirrors", "Last events", "heartbeats", "rec/s"):
        assert shown in done.stdout, done.stdout


def test_top_fits_on_a_screen() -> None:
    from rich.console import Console

    status = FlowStatus("east->west", 9, 90, 4, 10**9, 10**12, 120_000, 10**8, 7, (), {}, {}, {}, {}, ())
    mirror = {"topic": "a-topic-with-a-name-that-is-long", "lag": 10**6, "seconds_behind": 4000.0}
    rated = [("east->west", {**mirror, "records_per_second": 12345.6, "bytes_per_second": 1e8})] * 20
    events = [{"time": 0.0, "level": "WARNING", "text": f"{number} " + "x" * 200} for number in range(50)]
    look = Look([status] * 2, {"west->east": "cluster west cannot be reached"}, rated, rated, events)
    console = Console(width=80, height=40, record=True)
    console.print(frame(look, {"east->west": [1.0, 5.0, 9.0] * 50}, "http://127.0.0.1:8083", 80, 40))
    lines = console.export_text().splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 80 for line in lines)
    assert "1.1 h" in "\n".join(lines)
    assert [seconds(value) for value in (3, 200, 90000)] == ["3 s", "3 min", "1.0 d"]
