"""The status is written again and again, whatever fails meanwhile: with a signals topic in memory."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from heliograph.service import status_writer
from heliograph.service.flow_status import FlowStatus
from heliograph.service.signals_channel import SignalsChannel
from heliograph.service.status_writer import StatusWriter
from heliograph.wire.errors import TOPIC_AUTHORIZATION_FAILED, BrokerError
from heliograph.wire.records import Record
from logged import lines_of
from service.fakes import FakeCommands, make_context
from service.runner import until


class FakeTopic(FakeCommands):
    """The status partition. `errors` are raised by the next writes, one each."""

    topic = "signals"

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Record] = []
        self.writes = 0
        self.errors: list[Exception] = []

    async def metadata(self) -> object:
        return self.topic

    async def write(self, _client: object, _topic: object, _partition: int, pairs: list[tuple[bytes, bytes]]) -> int:
        if self.errors:
            raise self.errors.pop(0)
        self.writes += 1
        ((key, value),) = pairs
        self.add(key, value)
        return self.records[-1].offset

    async def read(self, _client: object, _topic: object, _partition: int, start: int, end: int) -> AsyncIterator[Any]:
        for record in self.records[start:end]:
            yield record

    def add(self, key: bytes, value: bytes) -> None:
        offset = len(self.records)
        self.records.append(Record(offset, 1_000_000 * offset, key, value))


def write_statuses(monkeypatch: pytest.MonkeyPatch, topic: FakeTopic, statuses: list[FlowStatus | Exception]) -> None:
    """Runs until all of these are written or have failed."""

    def status() -> FlowStatus:
        following = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        if isinstance(following, Exception):
            raise following
        return following

    async def main() -> None:
        writer = StatusWriter(make_context(run_id="mine"), cast(SignalsChannel, topic))
        task = asyncio.create_task(writer.run(status))
        await until(lambda: task.done() or (len(statuses) == 1 and not topic.errors and topic.writes >= 3))
        assert not task.done(), task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    monkeypatch.setattr(status_writer, "_STATUS_EVERY", 0.0)
    monkeypatch.setattr(status_writer, "write", topic.write)
    monkeypatch.setattr(status_writer, "read", topic.read)
    asyncio.run(main())


def test_writing_goes_on_after_errors_and_each_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused, moved = BrokerError(TOPIC_AUTHORIZATION_FAILED), BrokerError(6)  # NOT_LEADER_OR_FOLLOWER
    topic = FakeTopic()
    topic.errors = [moved, refused, refused, moved]
    broken = ValueError("no such number")
    write_statuses(monkeypatch, topic, [broken, broken, FlowStatus("A->B", records=7)])
    assert json.loads(topic.records[-1].value or b"")["records"] == 7
    assert lines_of(caplog, status_writer.__name__, logging.WARNING) == [
        ("ERROR", "A->B: the status cannot be written"),
        ("WARNING", "A->B: status and progress cannot be written to signals: TOPIC_AUTHORIZATION_FAILED"),
    ]


def test_other_runs_are_noticed_by_their_statuses_whatever_they_hold(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = FakeTopic()
    for value in (b'{"run_id": "other", "host": "h"}', b"no JSON", b'{"run_id": "other", "later": [1]}'):
        topic.add(b"status", value)
    write_statuses(monkeypatch, topic, [FlowStatus("A->B", run_id="mine")])
    messages = [message for _level, message in lines_of(caplog, "heliograph.service.other_runs")]
    assert [message.split(" runs ")[0] for message in messages] == [
        "A->B: another process (run other on h)",
        "A->B: another process (run of another version)",
    ]


def test_leases_get_log_levels_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = [{"heliograph": 20}, {"heliograph": 20}, {"heliograph": 10}]
    monkeypatch.setattr(status_writer, "levels", lambda: levels.pop(0) if len(levels) > 1 else levels[0])
    topic = FakeTopic()
    write_statuses(monkeypatch, topic, [FlowStatus("A->B")])
    assert topic.sent == [(b"levels", b'{"heliograph":10}')]
