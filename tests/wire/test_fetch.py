"""Fetch sessions on a real broker."""

import asyncio
from collections.abc import Awaitable, Callable

from kafka import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.fetch import FetchPartition, FetchSession, Limits
from heliograph.wire.metadata import Topic
from logs import PATIENCE, Pair, some_records

_QUICK = Limits(1 << 20, max_wait=0.05)


def _in_session(pair: Pair, topic: str, do: Callable[[FetchSession, Topic], Awaitable[None]]) -> None:
    async def main() -> None:
        client = ClusterClient(pair.a.cluster)
        found = (await client.metadata([topic])).topics[topic]
        connection = await client.dedicated_connection(found.leaders[0])
        try:
            await do(FetchSession(connection), found)
        finally:
            connection.close()
            client.close()

    asyncio.run(main())


def _wanted(topic: Topic, partition: int, offset: int) -> FetchPartition:
    return FetchPartition(topic.name, topic.id, partition, offset, 1 << 20)


def test_only_partitions_with_data_are_in_an_answer(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=4)
    pair.a.write(topic, some_records(10), partition=2)

    async def do(session: FetchSession, found: Topic) -> None:
        first = await session.fetch([_wanted(found, number, 0) for number in range(4)], [], _QUICK)
        assert {fetched.partition for fetched in first} == {0, 1, 2, 3}
        assert {fetched.partition for fetched in first if fetched.data} == {2}
        second = await session.fetch([_wanted(found, 2, 10)], [], _QUICK)
        assert {fetched.partition for fetched in second} <= {2}
        await asyncio.to_thread(pair.a.write, topic, some_records(3), 1)
        (news,) = [fetched for fetched in await session.fetch([], [], _QUICK) if fetched.data]
        assert (news.partition, news.end) == (1, 3)

    _in_session(pair, topic, do)


def test_a_partition_that_is_dropped_is_not_fetched_again(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=2)

    async def do(session: FetchSession, found: Topic) -> None:
        await session.fetch([_wanted(found, 0, 0), _wanted(found, 1, 0)], [], _QUICK)
        await asyncio.to_thread(pair.a.write, topic, some_records(3), 0)
        await asyncio.to_thread(pair.a.write, topic, some_records(3), 1)
        answers = await session.fetch([], [(topic, 0)], _QUICK)
        assert [fetched.partition for fetched in answers if fetched.data] == [1]
        assert (topic, 0) not in session
        back = await session.fetch([_wanted(found, 0, 1), _wanted(found, 1, 3)], [], _QUICK)
        assert [fetched.partition for fetched in back if fetched.data] == [0]

    _in_session(pair, topic, do)


def test_a_session_that_the_broker_has_evicted_is_started_again(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))

    async def do(session: FetchSession, found: Topic) -> None:
        await session.fetch([_wanted(found, 0, 5)], [], _QUICK)
        for wrong in (
            (987654321, 5),
            (session._session[0], 77),
        ):  # FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
            session._session = wrong
            assert await session.fetch([_wanted(found, 0, 0)], [], _QUICK) == []
            (again,) = await session.fetch([], [], _QUICK)
            assert again.data
            assert session._session[0] not in (0, 987654321)

    _in_session(pair, topic, do)


def test_a_recreated_topic_replaces_the_old_one_in_a_session(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))

    async def do(session: FetchSession, found: Topic) -> None:
        await session.fetch([_wanted(found, 0, 0)], [], _QUICK)
        await asyncio.to_thread(pair.a.delete, topic)
        await asyncio.to_thread(pair.a.create, topic)
        await asyncio.to_thread(pair.a.write, topic, some_records(2))
        client = ClusterClient(pair.a.cluster)
        new = (await client.metadata([topic])).topics[topic]
        client.close()
        assert new.id != found.id
        answers = await session.fetch([_wanted(new, 0, 0)], [], _QUICK)
        while not any(fetched.data for fetched in answers):
            answers = await session.fetch([], [], _QUICK)
        (news,) = [fetched for fetched in answers if fetched.data]
        assert news.end == 2

    _in_session(pair, topic, do)


def _quota(pair: Pair, client_id: str, **rates: float | None) -> None:
    entry = AlterClientQuotasRequest.EntryData
    admin = KafkaAdminClient(bootstrap_servers=pair.a.bootstrap)
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in rates.items()],
            )
        ],
        validate_only=False,
    )
    answer = admin._manager.run(admin._manager.send, request)
    admin.close()
    assert not answer.entries[0].error_code, answer


def test_a_broker_reports_the_throttle_time_of_a_client_over_its_quota(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(2000, size=500), per_batch=100)
    _quota(pair, "heliograph", consumer_byte_rate=10_000.0)
    try:

        async def do(session: FetchSession, found: Topic) -> None:
            async with asyncio.timeout(PATIENCE):
                while not session.throttled:  # a broker learns of a quota a moment after it is set
                    await session.fetch([_wanted(found, 0, 0)], [], _QUICK)

        _in_session(pair, topic, do)
    finally:
        _quota(pair, "heliograph", consumer_byte_rate=None)
