"""The signals topic vanishes while a flow runs: with a follower in memory."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from heliograph.control.internal_topic_setup import MissingTopics
from heliograph.model.flow import Flow
from heliograph.service import signals_channel
from heliograph.service.signals_channel import SignalsChannel
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, Unreachable
from heliograph.wire.records import Record
from logged import lines_of, records_of
from service.fakes import make_context
from service.runner import until

Step = Exception | str | list[Record]


class FakeFollower:
    """Goes through its script: yields records, raises errors, reports a loss; then waits."""

    script: ClassVar[list[Step]] = []

    def __init__(self, _client: object, _topic: str, _partition: int, position: int, lost: Callable[[str], None]):
        self.position = position
        self._lost = lost

    async def records(self) -> AsyncIterator[list[Record]]:
        while self.script:
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            if isinstance(step, str):
                self._lost(step)
            else:
                yield step
        await asyncio.Event().wait()


class FakeTarget:
    """A cluster without the signals topic."""

    def __init__(self) -> None:
        self.error = UNKNOWN_TOPIC_OR_PARTITION

    async def metadata(self, names: list[str]) -> Any:
        return SimpleNamespace(topics={name: SimpleNamespace(error=self.error) for name in names})


GONE = BrokerError(UNKNOWN_TOPIC_OR_PARTITION)
REPORT = [Record(0, 0, b"lease", b"{}")]


def follow(
    monkeypatch: pytest.MonkeyPatch, script: list[Step], creations: list[Exception | None]
) -> tuple[SignalsChannel, list[list[Record]]]:
    """Follows until the script is over and its last records are handled. `creations` are the outcomes of creating the
    topic again."""
    handled: list[list[Record]] = []

    async def ensure(_flow: Flow, _target: ClusterClient) -> None:
        outcome = creations.pop(0)
        if outcome is not None:
            raise outcome

    async def handle(records: list[Record]) -> None:
        handled.append(records)
        if records[0].value == b"bad":
            raise ValueError("cannot be handled")

    async def main() -> SignalsChannel:
        context = make_context()
        cast(Any, context.clients).signals = FakeTarget()
        channel = SignalsChannel(context)
        channel.next_offset = 17
        task = asyncio.create_task(channel.follow(handle))
        await until(lambda: task.done() or (not FakeFollower.script and handled and handled[-1] is REPORT))
        assert not task.done(), task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return channel

    monkeypatch.setattr(signals_channel, "Follower", FakeFollower)
    monkeypatch.setattr(signals_channel, "ensure_signals_topic", ensure)
    monkeypatch.setattr(signals_channel, "_RETRY_AFTER", 0.0)
    monkeypatch.setattr(FakeFollower, "script", script)
    return asyncio.run(main()), handled


def test_a_missing_topic_is_created_again_and_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    creations: list[Exception | None] = [Unreachable("b"), MissingTopics("create it by hand"), None]
    channel, handled = follow(monkeypatch, [REPORT, GONE, GONE, GONE, REPORT], creations)
    assert (handled, creations, channel.next_offset) == ([REPORT, REPORT], [], 17)
    messages = [message for _level, message in lines_of(caplog, signals_channel.__name__, logging.WARNING)]
    assert messages == [
        f"A->B: internal topic {channel.topic} is missing: it is created again",
        "A->B: reports of leases cannot be read: b",
        "A->B: reports of leases cannot be read: create it by hand",
    ]


def test_after_a_loss_commands_are_read_from_the_start_and_no_older_lease_is_renewed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    channel, _handled = follow(monkeypatch, ["partition 1 was created again", REPORT], [])
    assert channel.next_offset == 0
    assert channel.lost_at > 0
    ((_level, message),) = lines_of(caplog, signals_channel.__name__, logging.WARNING)
    assert message.startswith("A->B: partition 1 was created again; reports and commands may be lost")


def test_reading_goes_on_after_other_errors(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    bad = [Record(0, 0, b"lease", b"bad")]
    _channel, handled = follow(monkeypatch, [Unreachable("b"), bad, REPORT], [])
    assert handled == [bad, REPORT]
    (record,) = records_of(caplog, signals_channel.__name__, logging.WARNING)
    assert record.message == "A->B: reports of leases cannot be handled"
    assert record.exc_info is not None
