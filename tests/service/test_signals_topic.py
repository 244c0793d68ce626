"""The signals topic is deleted, or created again, while a flow runs."""

import asyncio
import logging
from dataclasses import replace

import pytest

from copying.lease import only
from heliograph.control.internal_topic_setup import MissingTopics, ensure_internal_topics, ensure_signals_topic
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import PROGRESS, signals_topic
from heliograph.service.flow_status import last_status
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError
from heliograph.wire.following import Follower
from logs import Pair, on, some_records
from service.runner import running, until


def _delete(pair: Pair, flow: Flow) -> None:
    pair.b.delete(signals_topic(flow.source.alias))


def _create_again(pair: Pair, flow: Flow) -> None:
    _delete(pair, flow)

    async def create(client: ClusterClient) -> None:
        source = ClusterClient(flow.source)
        await ensure_internal_topics(flow, source, client)
        source.close()

    on(pair.b, create)


@pytest.mark.parametrize("harm", [_delete, _create_again])
def test_leases_are_renewed_again_after_the_signals_topic_is_gone(
    pair: Pair, topic: str, harm: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(harm)
    caplog.set_level(logging.WARNING)
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    flow = replace(only(pair.flow(), topic), lease_seconds=3.0)
    flow = replace(flow, source=replace(flow.source, alias=f"signals{'-again' if harm is _create_again else ''}"))
    name = signals_topic(flow.source.alias)

    async def main() -> None:
        async with running(flow) as runner:
            await until(lambda: runner.view.leases().renewals >= 2)
            await asyncio.to_thread(harm, pair, flow)
            await until(lambda: any("may be lost, so leases" in record.message for record in caplog.records))
            noticed = runner.view.leases().renewals
            await asyncio.to_thread(pair.a.write, topic, some_records(10))
            # For a renewal both must read what the other writes.
            await until(lambda: runner.view.leases().renewals >= noticed + 3, lambda: caplog.text)
            await until(lambda: [at.source for at in runner.view.positions().values()] == [20])
            await until(lambda: runner.view.status().lag == 0)
            assert runner.view.leases().failures == 0
            assert any(name in record.message for record in caplog.records if record.levelno == logging.WARNING)

    asyncio.run(main())
    assert pair.a.read(topic) == pair.b.read(f"{flow.source.alias}.{topic}")
    driver = [record.message for record in caplog.records if "may be lost, so leases" in record.message]
    assert len(driver) == 1  # logged once
    assert on(pair.b, lambda client: last_status(client, flow.source.alias)) is not None


def test_a_signals_topic_with_too_few_partitions_is_an_error(pair: Pair, topic: str) -> None:
    """Somebody may have created it by hand."""
    flow = only(pair.flow(), topic)
    flow = replace(flow, source=replace(flow.source, alias="narrow"))
    name = signals_topic("narrow")
    pair.b.create(name)

    async def follow(client: ClusterClient) -> None:
        async for _records in Follower(client, name, PROGRESS, 0, print).records():
            pass

    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        on(pair.b, follow)
    with pytest.raises(MissingTopics, match="it has 1 partitions, and 3 are needed"):
        on(pair.b, lambda client: ensure_signals_topic(flow, client))


def test_a_status_that_fails_is_logged_once_and_written_later(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heliograph.service.status_writer._STATUS_EVERY", 0.05)
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    calls: list[object] = []

    async def main() -> None:
        async with running(flow) as runner:
            real = runner.view.status

            def broken(most: int | None = None) -> object:
                calls.append(most)
                if len(calls) < 5:
                    raise ValueError("no such number")
                return real(most)

            monkeypatch.setattr(runner.view, "status", broken)
            await until(lambda: len(calls) >= 7)

    asyncio.run(main())
    assert sum("the status cannot be written" in record.message for record in caplog.records) == 1
