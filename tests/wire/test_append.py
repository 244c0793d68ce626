"""Appending by topic id: to the topic that was meant, or not at all."""

import asyncio
from dataclasses import replace

from heliograph.wire.append import Appended, PartitionBatch, append
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import INVALID_RECORD, UNKNOWN_TOPIC_ID
from heliograph.wire.metadata import id_text
from heliograph.wire.records import encode
from logs import Pair, on, some_records


async def _id_of(client: ClusterClient, topic: str) -> str:
    return id_text((await client.metadata([topic])).topics[topic].id)


async def _append(client: ClusterClient, *batches: PartitionBatch) -> list[Appended]:
    (leader,) = client.brokers
    return await append(await client.connection(leader), batches, 10.0)


def test_a_batch_does_not_reach_a_topic_that_was_deleted_and_created_again(pair: Pair, topic: str) -> None:
    pair.b.create(topic)
    batch = encode(some_records(3))

    async def test(client: ClusterClient) -> None:
        earlier = await _id_of(client, topic)
        await asyncio.to_thread(pair.b.delete, topic)
        await asyncio.to_thread(pair.b.create, topic)
        (refused,) = await _append(client, PartitionBatch(topic, 0, [batch], earlier))
        assert (refused.topic, refused.error) == (topic, UNKNOWN_TOPIC_ID)
        (appended,) = await _append(client, PartitionBatch(topic, 0, [batch], await _id_of(client, topic)))
        assert (appended.topic, appended.error, appended.base_offset) == (topic, 0, 0)

    on(pair.b, test)


def test_answers_for_several_topics_and_partitions_have_their_names(pair: Pair, topic: str) -> None:
    names = [topic, f"{topic}-other"]
    for name in names:
        pair.b.create(name, partitions=2)
    data = encode(some_records(200))

    async def test(client: ClusterClient) -> None:
        ids = {name: await _id_of(client, name) for name in names}
        for at in (0, 200):
            batches = [
                PartitionBatch(name, partition, [data[:61], data[61:]], ids[name])
                for partition in range(2)
                for name in names
            ]
            answers = await _append(client, *batches)
            assert {(answer.topic, answer.partition, answer.error, answer.base_offset) for answer in answers} == {
                (name, partition, 0, at) for name in names for partition in range(2)
            }

    on(pair.b, test)


def test_a_refused_record_is_named(pair: Pair, topic: str) -> None:
    pair.b.create(topic, cleanup_policy="compact")
    first, second = some_records(2)

    async def test(client: ClusterClient) -> None:
        data = encode([first, replace(second, key=None)])
        (answer,) = await _append(client, PartitionBatch(topic, 0, [data], await _id_of(client, topic)))
        assert answer.error == INVALID_RECORD
        assert [index for index, _text in answer.bad] == [1]
        assert answer.message

    on(pair.b, test)
