"""A Kafka log for tests: written batch by batch, read back by kafka-python, independently of Heliograph."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError
from kafka.protocol.admin import AlterClientQuotasRequest

from heliograph.copy.cursor import Cursor, ResumePoint
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.start_filler import fill
from heliograph.model.flow import Cluster, Flow
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets
from heliograph.wire.errors import (
    MESSAGE_TOO_LARGE,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerError,
    WireError,
)
from heliograph.wire.metadata import are_different, id_text
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import Record, encode, read_batches
from heliograph.wire.topic_requests import (
    NewTopic,
    change_configs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
)
from heliograph.wire.transactions import TransactionalId
from waiting import PATIENCE, async_until, until

_NOT_LEADER = 6

# For a consumer that subscribes. One that joins its group before it has the topic's metadata is assigned nothing, and
# joins again when it refreshes the metadata: by default after five minutes.
JOINS_SOON = {"metadata_max_age_ms": 500}

__all__ = ["JOINS_SOON", "PATIENCE", "Log", "Pair", "Record", "Seen", "on", "some_records", "until"]


@dataclass(frozen=True)
class Seen:
    """One record as a consumer sees it, without its offset."""

    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Log:
    bootstrap: str

    @property
    def cluster(self) -> Cluster:
        addresses = [address.split(":") for address in self.bootstrap.split(",")]
        return Cluster("test", tuple((host, int(port)) for host, port in addresses), request_timeout=10.0)

    def create(self, topic: str, partitions: int = 1, replicas: int = 1, **configs: str) -> None:
        settings = tuple((key.replace("_", "."), value) for key, value in configs.items())

        async def do(client: ClusterClient) -> None:
            outcome = await create_topics(client, [NewTopic(topic, partitions, replicas, settings)])
            assert outcome == {topic: None}, outcome
            await _until_led(client, topic, partitions)

        self._with_client(do)

    def _create_unless_exists(self, topic: str) -> bool:
        async def do(client: ClusterClient) -> bool:
            error = (await create_topics(client, [NewTopic(topic, 1, 1)]))[topic]
            assert error is None or error.code == TOPIC_ALREADY_EXISTS, error
            if error is None:
                await _until_led(client, topic, 1)
            return error is None

        is_created: bool = on(self, do)
        return is_created

    def create_and_delete(self, topics: list[NewTopic]) -> dict[str, Any]:
        """The broker's answers; the topics are deleted afterwards."""
        outcome: dict[str, Any] = {}

        async def do(client: ClusterClient) -> None:
            outcome.update(await create_topics(client, topics))
            await delete_topics(client, [name for name, error in outcome.items() if error is None])

        self._with_client(do)
        return outcome

    def configure(self, topic: str, **configs: str) -> None:
        async def do(client: ClusterClient) -> None:
            settings = {key.replace("_", "."): value for key, value in configs.items()}
            assert await change_configs(client, {topic: settings}) == {topic: None}
            await async_until(lambda: _shows(client, topic, settings))

        self._with_client(do)

    def grow(self, topic: str, partitions: int) -> None:
        async def do(client: ClusterClient) -> None:
            assert await create_partitions(client, {topic: partitions}) == {topic: None}
            await _until_led(client, topic, partitions)

        self._with_client(do)

    def delete(self, topic: str) -> None:
        async def do(client: ClusterClient) -> None:
            before = (await client.metadata([topic])).topics[topic].id
            assert await delete_topics(client, [topic]) == {topic: None}
            await async_until(lambda: _is_gone(client, topic, before))

        self._with_client(do)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Deletes everything before an offset, as retention would."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.delete_records({TopicPartition(topic, partition): offset})
        admin.close()

    def limit(self, client_id: str, quota: str, bytes_per_second: float | None) -> None:
        """A quota of a client, `consumer_byte_rate` or `producer_byte_rate`; None for none."""
        entry = AlterClientQuotasRequest.EntryData
        request = AlterClientQuotasRequest(
            entries=[
                entry(
                    entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                    ops=[entry.OpData(key=quota, value=bytes_per_second or 0.0, remove=bytes_per_second is None)],
                )
            ],
            validate_only=False,
        )

        async def do(client: ClusterClient) -> None:
            answer = await (await client.controller()).request(request, newest=1, oldest=0)
            assert not answer.entries[0].error_code, answer

        self._with_client(do)

    def append(self, topic: str, batches: list[bytes], partition: int = 0) -> None:
        async def do(client: ClusterClient) -> None:
            if batches:
                await async_until(lambda: _is_appended(client, topic, partition, batches[0]))
            leader = (await client.metadata([topic])).topics[topic].leaders[partition]
            connection = await client.connection(leader)
            for batch in batches[1:]:
                (answer,) = await append(connection, [PartitionBatch(topic, partition, [batch])], 10.0)
                assert not answer.error, answer

        self._with_client(do)

    def write(
        self, topic: str, records: list[Record], partition: int = 0, codec: int = 0, per_batch: int = 100
    ) -> None:
        chunks = [records[at : at + per_batch] for at in range(0, len(records), per_batch)]
        self.append(topic, [encode(chunk, codec) for chunk in chunks], partition)

    def read(self, topic: str, partition: int = 0, committed: bool = True) -> list[Seen]:
        """Every record, by a plain consumer."""
        return [seen for _offset, seen in self.read_with_offsets(topic, partition, committed)]

    def pairs(self, topic: str, partition: int = 0) -> list[tuple[bytes, bytes]]:
        """Keys and values of the records that have both."""
        records = self.read(topic, partition)
        return [(seen.key, seen.value) for seen in records if seen.key is not None and seen.value is not None]

    def commit(self, group: str, topic: str, offset: int, metadata: str = "") -> None:
        """Commits an offset for a group without members."""
        offsets = {group: {(topic, 0): Committed(offset, metadata)}}
        assert on(self, lambda client: commit_offsets(client, offsets)) == {group: None}

    def read_with_offsets(self, topic: str, partition: int = 0, committed: bool = True) -> list[tuple[int, Seen]]:
        at = TopicPartition(topic, partition)
        consumer: Any = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            isolation_level="read_committed" if committed else "read_uncommitted",
            group_id=None,
        )
        try:
            consumer.assign([at])
            end = consumer.end_offsets([at])[at]
            consumer.seek_to_beginning(at)
            records: list[tuple[int, Seen]] = []

            def has_read_all() -> bool:
                if consumer.position(at) >= end:
                    return True
                records.extend((record.offset, _seen(record)) for record in consumer.poll(timeout_ms=500).get(at, []))
                return bool(consumer.position(at) >= end)

            until(has_read_all, lambda: f"read {topic}-{partition} up to {consumer.position(at)} of {end}", every=0)
            return records
        finally:
            consumer.close()

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """First and next offset."""
        offsets: list[int | WireError] = []

        async def are_read(client: ClusterClient) -> bool:
            """Not while the leader changes."""
            topics = (await client.metadata([topic])).topics
            key = topic, partition
            offsets[:] = [
                (await list_offsets(client, topics, [key], which, False))[key] for which in (EARLIEST, LATEST)
            ]
            return all(isinstance(offset, int) for offset in offsets)

        async def do(client: ClusterClient) -> None:
            await _until_led(client, topic, partition + 1)
            await async_until(lambda: are_read(client), lambda: offsets)

        self._with_client(do)
        start, end = offsets
        assert isinstance(start, int)
        assert isinstance(end, int)
        return start, end

    def boundaries(self, topic: str, partition: int = 0) -> list[tuple[int, str]]:
        """Count and codec of each batch."""
        start, end = self.bounds(topic, partition)
        boundaries: list[tuple[int, str]] = []

        async def do(client: ClusterClient) -> None:
            metadata = (await client.metadata([topic])).topics[topic]
            batches = read_batches(client, metadata, partition, start, end)
            boundaries.extend([(batch.count, batch.codec) async for batch in batches])

        self._with_client(do)
        return boundaries

    def transaction(self, topic: str, count: int, commit: bool | None = True, per_batch: int = 10) -> Any:
        """Records in a transaction, which is committed, aborted or (None) left open. Returns the producer if open."""
        producer: Any = KafkaProducer(
            bootstrap_servers=self.bootstrap, transactional_id=uuid.uuid4().hex, batch_size=1, linger_ms=0
        )
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(count):
            producer.send(topic, f"{number}-{uuid.uuid4().hex}".encode(), partition=0)
            if number % per_batch == per_batch - 1:
                producer.flush()
        producer.flush()
        if commit is None:
            return producer
        end = self.bounds(topic)[1]
        producer.commit_transaction() if commit else producer.abort_transaction()
        producer.close()
        self._until_grown(topic, end)
        return None

    @contextmanager
    def transactional_producers(self) -> Iterator[list[Any]]:
        """Two, for nested transactions."""
        producers: list[Any] = [
            KafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=uuid.uuid4().hex, batch_size=300)
            for _ in range(2)
        ]
        for producer in producers:
            producer.init_transactions()
        yield producers
        for producer in producers:
            producer.close()

    def empty_transaction(self, topic: str) -> None:
        """Appends only a marker: an offset that consumers do not see."""
        end = self.bounds(topic)[1]

        async def do(client: ClusterClient) -> None:
            transaction = TransactionalId(client, uuid.uuid4().hex, 10.0)
            await transaction.init_producer()
            await transaction.add([(topic, 0)])
            await transaction.end(commit=True)

        self._with_client(do)
        self._until_grown(topic, end)

    def _until_grown(self, topic: str, end: int) -> None:
        """A coordinator answers before the marker is in the log."""
        until(lambda: self.bounds(topic)[1] > end, every=0.02)

    def skip(self, topic: str, count: int) -> None:
        """Makes an empty topic begin at a high offset."""
        cluster = replace(self.cluster, request_timeout=30.0)

        async def do(_client: ClusterClient) -> None:
            client = ClusterClient(cluster)
            await client.connect()
            leader = (await client.metadata([topic])).topics[topic].leaders[0]
            cursor = Cursor(MirrorPartition(topic, topic, 0), 1 << 62)
            cursor.mirror.locate(leader, "")
            cursor.start(ResumePoint(Position(count, 0), preserves_offsets=True))
            await fill(cursor, client, LeaseClock(float("inf")))
            client.close()

        self._with_client(do)

    def config(self, topic: str, name: str) -> str | None:
        value: str | None = on(self, lambda client: describe_configs(client, [topic]))[topic][name].value
        return value

    def topics(self) -> set[str]:
        names: set[str] = on(self, lambda client: _topic_names(client))
        return names

    def exists(self, topic: str) -> bool:
        return not on(self, lambda client: client.metadata([topic])).topics[topic].error

    def partitions(self, topic: str) -> int:
        return len(on(self, lambda client: _leaders(client, topic)))

    def _with_client(self, do: Callable[[ClusterClient], Awaitable[None]]) -> None:
        on(self, do)

    def create_compacted(self, topic: str, keys: Callable[[int], bytes], count: int = 300, codec: int = 0) -> None:
        """A topic with holes, as the broker's own compaction leaves them."""
        self.create(
            topic,
            cleanup_policy="compact",
            segment_ms="100",
            min_cleanable_dirty_ratio="0.001",
            max_compaction_lag_ms="100",
            segment_bytes="1048576",
        )
        now = int(time.time() * 1000)
        records = [
            Record(0, now + n, keys(n), f"{n}-{uuid.uuid4().hex}".encode(), (("n", b"%d" % n),)) for n in range(count)
        ]
        self.write(topic, records, codec=codec, per_batch=20)

        def is_compacted() -> bool:
            if sum(count for count, _codec in self.boundaries(topic)) < count:
                return True
            self.write(topic, [Record(0, int(time.time() * 1000), b"other", b"roll")])
            return False

        until(is_compacted, lambda: f"the broker has not compacted {topic}", every=0.5)
        self.end_compaction(topic)

    def end_compaction(self, topic: str) -> None:
        """Returns when the topic is not compacted any more, so that it does not change while it is compared.

        A broker shows new settings before it applies them. It applies one change after the other, and the first one
        ends a running compaction: when the second has its effect, that is over.
        """
        batch = encode([Record(0, int(time.time() * 1000), b"other", b"x" * 2000)])
        self.configure(topic, cleanup_policy="delete", max_message_bytes="1000")
        until(lambda: self._append(topic, batch) == MESSAGE_TOO_LARGE)
        self.configure(topic, max_message_bytes="1048588")
        until(lambda: self._append(topic, batch) == 0)

    def _append(self, topic: str, batch: bytes) -> int:
        """Returns the broker's error code."""

        async def do(client: ClusterClient) -> int:
            leader = (await client.metadata([topic])).topics[topic].leaders[0]
            (answer,) = await append(await client.connection(leader), [PartitionBatch(topic, 0, [batch])], 10.0)
            return int(answer.error)

        code: int = on(self, do)
        return code

    def place(self, topic: str, *replicas: list[int]) -> None:
        """A topic with one partition per list of brokers. The first broker of a list leads; each of them may."""
        admin: Any = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        configs = {"unclean.leader.election.enable": "true"}
        admin.create_topics({topic: {"assignments": dict(enumerate(replicas)), "configs": configs}})
        admin.close()
        for partition in range(len(replicas)):
            self.bounds(topic, partition)

    def recreate(self, topic: str, count: int) -> None:
        """Deletes a topic, and creates it again with so many records."""
        self.delete(topic)
        # With ZooKeeper a topic exists for a moment after it is gone from the metadata: TOPIC_ALREADY_EXISTS.
        until(lambda: self._create_unless_exists(topic), every=0.05)
        self.write(topic, some_records(count), per_batch=10)

    def leader(self, topic: str) -> int:
        leader: int = on(self, lambda client: _leaders(client, topic))[0]
        return leader

    def until_led(self, topics: Sequence[str], leader: int, *in_sync: int) -> None:
        """Until the first partitions of these topics have this leader and these replicas in sync."""
        admin: Any = KafkaAdminClient(bootstrap_servers=self.bootstrap)

        def replicas() -> set[tuple[int, ...]]:
            try:
                partitions = [topic["partitions"][0] for topic in admin.describe_topics(list(topics))]
            except KafkaConnectionError:  # it has asked a broker that is down
                return set()
            return {(partition["leader_id"], *sorted(partition["isr_nodes"])) for partition in partitions}

        until(
            lambda: replicas() == {(leader, *in_sync)},
            lambda: f"leader and replicas in sync of {topics} are {replicas()}",
            every=0.05,
        )
        admin.close()


@dataclass(frozen=True)
class Pair:
    """The two clusters that most tests use."""

    a: Log
    b: Log

    def flow(self) -> Flow:
        """A flow without heartbeats, which other tests write and which any flow would copy."""
        a, b = replace(self.a.cluster, alias="A"), replace(self.b.cluster, alias="B")
        return Flow(a, b, replication_factor=1, heartbeats_replication=False)


def _seen(record: Any) -> Seen:
    headers = tuple((name, value) for name, value in record.headers)
    return Seen(record.timestamp, record.timestamp_type, record.key, record.value, headers)


async def _topic_names(client: ClusterClient) -> set[str]:
    return set((await client.metadata(None)).topics)


async def _is_gone(client: ClusterClient, topic: str, topic_id: uuid.UUID) -> bool:
    """Also if somebody has created it again already."""
    found = (await client.metadata([topic])).topics[topic]
    return bool(found.error) or are_different(id_text(found.id), id_text(topic_id))


async def _leaders(client: ClusterClient, topic: str) -> dict[int, int]:
    return (await client.metadata([topic])).topics[topic].leaders


async def _shows(client: ClusterClient, topic: str, settings: dict[str, str]) -> bool:
    """A broker acknowledges a change before it shows the new value itself."""
    shown = (await describe_configs(client, [topic]))[topic]
    assert not isinstance(shown, BrokerError)
    return all(name in shown and shown[name].value == value for name, value in settings.items())


async def _is_appended(client: ClusterClient, topic: str, partition: int, batch: bytes) -> bool:
    """False if the leader does not know yet that it leads this partition: metadata may show a new one before."""
    leader = (await client.metadata([topic])).topics[topic].leaders[partition]
    connection = await client.connection(leader)
    (answer,) = await append(connection, [PartitionBatch(topic, partition, [batch])], 10.0)
    assert answer.error in (0, UNKNOWN_TOPIC_OR_PARTITION, _NOT_LEADER), answer
    return not answer.error


async def _until_led(client: ClusterClient, topic: str, partitions: int) -> None:
    """A broker names the leader of a new partition before that leader knows it."""

    async def is_led() -> bool:
        topics = (await client.metadata([topic])).topics
        offsets = await list_offsets(
            client, topics, [(topic, partition) for partition in range(partitions)], LATEST, False
        )
        return all(isinstance(offset, int) for offset in offsets.values())

    await async_until(is_led, lambda: f"{topic} has no leader for each of {partitions} partitions")


def some_records(count: int, size: int = 100, start: int = 0) -> list[Record]:
    """Distinct records: a missing or repeated one shows."""
    now = int(time.time() * 1000)
    return [
        Record(0, now, str(start + number).encode(), f"{start + number}-{uuid.uuid4().hex}".ljust(size, ".").encode())
        for number in range(count)
    ]


def on(log: Log, do: Callable[[ClusterClient], Awaitable[Any]]) -> Any:
    """Runs something with a client of a cluster, and returns its result."""

    async def main() -> Any:
        client = ClusterClient(log.cluster)
        try:
            await client.connect()
            return await do(client)
        finally:
            client.close()

    return asyncio.run(main())
