"""The topic through which driver and leases talk is deleted, or created again, while a flow runs."""

import asyncio
import logging
from dataclasses import replace

import pytest

from copying.lease import only
from heliograph.control.internal_topics import MissingTopics, ensure_internal_topics, ensure_signals_topic
from heliograph.copy.work import MirrorPartition
from heliograph.model.flow import Cluster, Flow
from heliograph.model.internal_topics import PROGRESS, signals_topic
from heliograph.service.flow import FlowRunner
from heliograph.service.lease import Lease
from heliograph.service.status import last_status
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError
from heliograph.wire.following import Follower
from logs import Pair, on, some_records
from service.runner import run_here, running, until


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
def test_driver_and_leases_go_on_when_the_topic_between_them_is_another(
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
            await until(lambda: runner.leases().renewals >= 2)
            await asyncio.to_thread(harm, pair, flow)
            await until(lambda: any("may be lost, so leases" in one.message for one in caplog.records))
            noticed = runner.leases().renewals
            await asyncio.to_thread(pair.a.write, topic, some_records(10))
            # They get time again, which takes that both sides hear of each other.
            await until(lambda: runner.leases().renewals >= noticed + 3, lambda: caplog.text)
            await until(lambda: [at.source for at in runner.positions().values()] == [20])
            await until(lambda: runner.status().lag == 0)
            assert runner.leases().failures == 0
            assert any(name in one.message for one in caplog.records if one.levelno == logging.WARNING)

    asyncio.run(main())
    assert pair.a.read(topic) == pair.b.read(f"{flow.source.alias}.{topic}")
    driver = [one.message for one in caplog.records if "may be lost, so leases" in one.message]
    assert len(driver) == 1  # said once
    assert on(pair.b, lambda client: last_status(client, flow.source.alias)) is not None


def test_a_topic_with_too_few_partitions_is_told_and_not_waited_for(pair: Pair, topic: str) -> None:
    """Whoever has made it again by hand must hear what is wrong with it."""
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


def test_a_status_that_cannot_be_told_does_not_end_the_telling(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heliograph.service.flow._STATUS_EVERY", 0.05)
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    told: list[object] = []

    async def main() -> None:
        async with running(flow) as runner:
            real = runner.status

            def broken(most: int | None = None) -> object:
                told.append(most)
                if len(told) < 5:
                    raise ValueError("no such number")
                return real(most)

            monkeypatch.setattr(runner, "status", broken)
            await until(lambda: len(told) >= 7)

    asyncio.run(main())
    assert sum("the status cannot be told" in one.message for one in caplog.records) == 1


def test_who_may_have_missed_a_command_gets_no_more_time_and_others_read_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("heliograph.service.flow.time.monotonic", lambda: now)
    flow = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)))
    one = MirrorPartition("t", "A.t", 0)

    async def cancel(_lease: str) -> None:
        return None

    async def main() -> None:
        nonlocal now
        runner = FlowRunner(flow, (flow,), run_here, cancel, "run")
        runner._assignment, runner._commands_from = ((one,),), 7
        runner._mirrors.have_ids = True
        before = Lease("before", 0, (one,), _born=now)
        now += 5.0
        assert runner._may_go_on(before, set())
        runner._missed_signals("it was deleted and created again")
        now += 1.0
        after = Lease("after", 0, (one,), _born=now)
        now += 5.0
        assert [runner._may_go_on(lease, set()) for lease in (before, after)] == [False, True]
        assert runner._work(after).commands_from == 0
        runner.close()

    asyncio.run(main())
