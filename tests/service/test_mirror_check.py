"""A mirror that does not hold any more what was copied to it is copied again, however quiet its source is."""

import asyncio
import json
import uuid
from collections.abc import Mapping

import pytest

import heliograph.service.flow
from copying.lease import only
from heliograph.copy.counts import Counts
from heliograph.copy.signals import Report
from heliograph.copy.work import Copied, MirrorPartition, Position, Progress
from heliograph.model.flow import Cluster, Flow
from heliograph.service.account import Account
from heliograph.service.flow import FlowRunner
from heliograph.service.lease import Lease
from heliograph.service.mirror_check import MISSING, RECREATED, TRUNCATED, contradicted
from heliograph.wire.cluster import NO_ID, ClusterClient, Topic
from heliograph.wire.errors import TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.topics import NewTopic, create_topics
from logs import Pair, on, some_records
from service.runner import run_here, running, until

ONE = MirrorPartition("t", "A.t", 0)
ID, OTHER = uuid.uuid4(), uuid.uuid4()


async def _create(client: ClusterClient, topic: str) -> None:
    """Unless the driver was quicker."""
    error = (await create_topics(client, [NewTopic(topic, 2, 1)]))[topic]
    assert error is None or getattr(error, "code", 0) == TOPIC_ALREADY_EXISTS, error


@pytest.mark.parametrize("pause", [False, True], ids=["created-at-once", "created-by-us"])
def test_a_mirror_that_is_deleted_while_the_source_is_quiet_is_copied_again(
    pair: Pair, topic: str, pause: bool
) -> None:
    """Whether others create it before we look, or we do."""
    pair.a.create(topic, partitions=2)
    for partition in (0, 1):
        pair.a.write(topic, some_records(200), partition)
    mirror = f"A.{topic}"

    async def main() -> None:
        async with running(only(pair.flow(), topic)) as runner:
            await until(lambda: runner.status().lag == 0)
            await asyncio.to_thread(pair.b.delete, mirror)
            if not pause:
                await asyncio.to_thread(on, pair.b, lambda client: _create(client, mirror))
            await until(lambda: len(runner.status().notices) == 2, runner.status)
            await until(lambda: runner.status().lag == 0, runner.status)
            ends = [(await asyncio.to_thread(pair.b.bounds, mirror, one))[1] for one in (0, 1)]
            assert ends == [200, 200]  # so lag is of what is there
            assert {one.kind for one in runner.status().notices} == {"mirror-recreated"}

    asyncio.run(main())
    assert [pair.b.read(mirror, one) for one in (0, 1)] == [pair.a.read(topic, one) for one in (0, 1)]


def test_catching_up_means_that_the_mirrors_have_it(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(100))
    mirror = f"A.{topic}"

    async def main() -> None:
        async with running(only(pair.flow(), topic)) as runner:
            await runner.set_goals()
            await until(lambda: not runner.behind())
            await asyncio.to_thread(pair.b.delete, mirror)
            while not await runner.caught_up():
                await asyncio.sleep(0.05)
            assert await asyncio.to_thread(pair.b.bounds, mirror) == (0, 100)

    asyncio.run(main())


def _topic(identity: uuid.UUID, error: int = 0) -> dict[str, Topic]:
    return {"A.t": Topic("A.t", identity, False, {} if error else {0: 1}, error)}


def test_what_a_mirror_shows_is_compared_with_what_was_copied() -> None:
    at, place = {ONE: Position(10, 10, mirror_id=ID.hex)}, ("A.t", 0)
    assert contradicted(at, _topic(ID), {place: 10}) == {}
    assert contradicted(at, _topic(ID), {place: 12}) == {}  # copied on since
    assert contradicted(at, _topic(ID), {place: 9}) == {ONE: TRUNCATED}
    assert contradicted(at, _topic(OTHER), {place: 10}) == {ONE: RECREATED}
    assert contradicted(at, _topic(NO_ID, UNKNOWN_TOPIC_OR_PARTITION), {}) == {ONE: MISSING}
    # What cannot be known is no contradiction.
    assert contradicted(at, _topic(ID), {place: WireError("no leader")}) == {}
    assert contradicted(at, _topic(NO_ID, 29), {}) == {}
    assert contradicted(at, _topic(NO_ID), {place: 10}) == {}
    assert contradicted({ONE: Position(10, 10)}, _topic(ID), {place: 10}) == {}


def test_a_lease_that_was_told_to_begin_anew_is_not_believed_about_before() -> None:
    account, lease = Account("A->B", lambda: None), Lease("lease", 0, (ONE,))
    account.keep([ONE])

    def report(target: int, stay: int) -> None:
        progress = Progress(Position(target, target, mirror_id=ID.hex), 10, Copied(stay=stay))
        account.hear(Report("lease", 0, 0, Counts(), {ONE: progress}, ()), lease)

    report(10, 0)
    assert account.progress[ONE].position == Position(10, 10)
    account.forget([ONE])
    lease.stays.update([ONE])
    report(10, 0)  # was on its way
    assert ONE not in account.progress
    report(3, 1)
    assert account.progress[ONE].position == Position(3, 3)
    account.forget([ONE])
    account.hear(Report("next", 0, 0, Counts(), {ONE: Progress(Position(4, 4), 10)}, ()), Lease("next", 0, (ONE,)))
    assert account.progress[ONE].position == Position(4, 4)


def test_where_a_mirror_contradicts_nothing_counts_as_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the lag would be zero until a lease tells otherwise."""
    flow = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)))

    async def look(_target: ClusterClient, positions: Mapping[MirrorPartition, Position]) -> dict[MirrorPartition, str]:
        return dict.fromkeys(positions, RECREATED)

    async def cancel(_lease: str) -> None:
        return None

    async def main() -> None:
        runner = FlowRunner(flow, (flow,), run_here, cancel, "run")
        runner._account.keep([ONE])
        runner._account.progress[ONE] = Progress(Position(10, 10, mirror_id=ID.hex), 10)
        assert list(runner.positions()) == [ONE]
        assert not await runner._check_mirrors()
        assert runner.positions() == {}
        assert await runner._check_mirrors()  # there is nothing left to contradict
        runner.close()

    monkeypatch.setattr(heliograph.service.flow, "look_at_mirrors", look)
    asyncio.run(main())


def test_reports_tell_the_mirror_and_those_of_earlier_versions_are_read() -> None:
    progress = Progress(Position(5, 4, 3, ID.hex), 10, Copied(1, 2, 3, 4, 5), 2, 10)
    key, value = Report("lease", 1, 0, Counts(), {ONE: progress}, ()).to_record()
    read = Report.from_record(key, value).changed[ONE]
    assert (read, read.position.mirror_id, read.position.epoch) == (progress, ID.hex, 3)
    fields = json.loads(value)
    fields["changed"][0].pop()
    read = Report.from_record(key, json.dumps(fields).encode()).changed[ONE]
    assert (read, read.position.mirror_id) == (progress, "")
