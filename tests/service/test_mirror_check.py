"""A mirror that no longer holds what was copied to it is copied again, even if nothing is written to the source."""

import asyncio
import json
import uuid

import pytest

from copying.lease import only
from heliograph.copy.counts import Counts
from heliograph.copy.signals import Report
from heliograph.copy.work import Copied, Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.flow_stats import FlowStats
from heliograph.service.mirror_check import MISSING, RECREATED, TRUNCATED, contradictions
from heliograph.service.running_lease import RunningLease
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.metadata import NO_ID, Topic
from heliograph.wire.topic_requests import NewTopic, create_topics
from logs import Pair, on, some_records
from service.runner import running, until
from waiting import async_until

PARTITION = MirrorPartition("t", "A.t", 0)
ID, OTHER = uuid.uuid4(), uuid.uuid4()


async def _create(client: ClusterClient, topic: str) -> None:
    """Unless the driver was quicker."""
    error = (await create_topics(client, [NewTopic(topic, 2, 1)]))[topic]
    assert error is None or getattr(error, "code", 0) == TOPIC_ALREADY_EXISTS, error


@pytest.mark.parametrize("pause", [False, True], ids=["created-at-once", "created-by-us"])
def test_a_mirror_that_is_deleted_while_the_source_is_quiet_is_copied_again(
    pair: Pair, topic: str, pause: bool
) -> None:
    """Whether others create the mirror again first, or Heliograph does."""
    pair.a.create(topic, partitions=2)
    for partition in (0, 1):
        pair.a.write(topic, some_records(200), partition)
    mirror = f"A.{topic}"

    async def main() -> None:
        async with running(only(pair.flow(), topic)) as runner:
            await until(lambda: runner.view.status().lag == 0)
            await asyncio.to_thread(pair.b.delete, mirror)
            if not pause:
                await asyncio.to_thread(on, pair.b, lambda client: _create(client, mirror))
            await until(lambda: len(runner.view.status().notices) == 2, runner.view.status)
            await until(lambda: runner.view.status().lag == 0, runner.view.status)
            ends = [(await asyncio.to_thread(pair.b.bounds, mirror, partition))[1] for partition in (0, 1)]
            assert ends == [200, 200]  # so the lag is that of the new mirror
            assert {notice.kind for notice in runner.view.status().notices} == {"mirror-recreated"}

    asyncio.run(main())
    assert [pair.b.read(mirror, partition) for partition in (0, 1)] == [
        pair.a.read(topic, partition) for partition in (0, 1)
    ]


def test_a_flow_has_caught_up_when_its_mirrors_hold_everything(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(100))
    mirror = f"A.{topic}"

    async def main() -> None:
        async with running(only(pair.flow(), topic)) as runner:
            await runner.set_goals()
            await until(lambda: not runner.behind())
            await asyncio.to_thread(pair.b.delete, mirror)
            await async_until(runner.caught_up, every=0.05)
            assert await asyncio.to_thread(pair.b.bounds, mirror) == (0, 100)

    asyncio.run(main())


def _topic(identity: uuid.UUID, error: int = 0) -> dict[str, Topic]:
    return {"A.t": Topic("A.t", identity, False, {} if error else {0: 1}, error)}


def test_a_mirror_is_compared_with_the_position() -> None:
    at, mirror = {PARTITION: Position(10, 10, mirror_id=ID.hex)}, ("A.t", 0)
    assert contradictions(at, _topic(ID), {mirror: 10}) == {}
    assert contradictions(at, _topic(ID), {mirror: 12}) == {}  # more was copied since
    assert contradictions(at, _topic(ID), {mirror: 9}) == {PARTITION: TRUNCATED}
    assert contradictions(at, _topic(OTHER), {mirror: 10}) == {PARTITION: RECREATED}
    assert contradictions(at, _topic(NO_ID, UNKNOWN_TOPIC_OR_PARTITION), {}) == {PARTITION: MISSING}
    # What is unknown is no contradiction.
    assert contradictions(at, _topic(ID), {mirror: WireError("no leader")}) == {}
    assert contradictions(at, _topic(NO_ID, 29), {}) == {}
    assert contradictions(at, _topic(NO_ID), {mirror: 10}) == {}
    assert contradictions({PARTITION: Position(10, 10)}, _topic(ID), {mirror: 10}) == {}


def test_reports_from_before_a_partition_was_dropped_are_ignored() -> None:
    stats, lease = FlowStats("A->B", lambda: None), RunningLease("lease", 0, (PARTITION,))
    stats.retain([PARTITION])

    def report(target: int, stay: int) -> None:
        progress = Progress(Position(target, target, mirror_id=ID.hex), 10, Copied(stay=stay))
        stats.apply_report(Report("lease", 0, 0, Counts(), {PARTITION: progress}, ()), lease)

    report(10, 0)
    assert stats.progress[PARTITION].position == Position(10, 10)
    stats.forget_positions([PARTITION])
    lease.removals.update([PARTITION])
    report(10, 0)  # was sent before
    assert PARTITION not in stats.progress
    report(3, 1)
    assert stats.progress[PARTITION].position == Position(3, 3)
    stats.forget_positions([PARTITION])
    stats.apply_report(
        Report("next", 0, 0, Counts(), {PARTITION: Progress(Position(4, 4), 10)}, ()),
        RunningLease("next", 0, (PARTITION,)),
    )
    assert stats.progress[PARTITION].position == Position(4, 4)


def test_reports_have_the_mirrors_id_and_those_of_earlier_versions_are_read() -> None:
    progress = Progress(Position(5, 4, 3, ID.hex), 10, Copied(1, 2, 3, 4, 5), 2, 10)
    key, value = Report("lease", 1, 0, Counts(), {PARTITION: progress}, ()).to_record()
    read = Report.from_record(key, value).changed[PARTITION]
    assert (read, read.position.mirror_id, read.position.epoch) == (progress, ID.hex, 3)
    fields = json.loads(value)
    fields["changed"][0].pop()
    read = Report.from_record(key, json.dumps(fields).encode()).changed[PARTITION]
    assert (read, read.position.mirror_id) == (progress, "")
