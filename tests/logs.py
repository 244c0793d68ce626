"""A Kafka log as tests see it: written batch by batch, read back by kafka-python, which knows nothing of Heliograph."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.protocol.admin import AlterClientQuotasRequest

from heliograph.copy.cursor import Cursor
from heliograph.copy.filler import fill
from heliograph.copy.work import MirrorPartition, Position
from heliograph.model.flow import Cluster, Flow
from heliograph.wire.append import append
from heliograph.wire.cluster import ClusterClient, are_different, id_text
from heliograph.wire.errors import BrokerError
from heliograph.wire.groups import Committed, commit_offsets
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import Record, encode, read_batches
from heliograph.wire.topics import (
    NewTopic,
    change_configs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
)
from heliograph.wire.transactions import TransactionalId

PATIENCE = 240.0  # seconds until a test gives up: none but a failing one on a very slow machine waits so long

__all__ = ["PATIENCE", "Log", "Pair", "Record", "Seen", "some_records"]


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
        addresses = [one.split(":") for one in self.bootstrap.split(",")]
        return Cluster("test", tuple((host, int(port)) for host, port in addresses), request_timeout=10.0)

    def create(self, topic: str, partitions: int = 1, replicas: int = 1, **configs: str) -> None:
        settings = tuple((key.replace("_", "."), value) for key, value in configs.items())

        async def do(client: ClusterClient) -> None:
            outcome = await create_topics(client, [NewTopic(topic, partitions, replicas, settings)])
            assert outcome == {topic: None}, outcome
            await _until_led(client, topic, partitions)

        self._with_client(do)

    def create_and_delete(self, topics: list[NewTopic]) -> dict[str, Any]:
        """What the broker says of these; they are gone afterwards."""
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
            while not await _shows(client, topic, settings):
                await asyncio.sleep(0.02)

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
            deadline = time.monotonic() + PATIENCE
            while not (found := (await client.metadata([topic])).topics[topic]).error:
                if are_different(id_text(found.id), id_text(before)):  # others were quick to create it again
                    return
                assert time.monotonic() < deadline, f"{topic} is still there"
                await asyncio.sleep(0.02)

        self._with_client(do)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """As retention would: drop everything before an offset."""
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
            leader = (await client.metadata([topic])).topics[topic].leaders[partition]
            connection = await client.to(leader)
            for batch in batches:
                (answer,) = await append(connection, [(topic, partition, [batch])], 10.0)
                assert not answer.error, answer

        self._with_client(do)

    def write(
        self, topic: str, records: list[Record], partition: int = 0, codec: int = 0, per_batch: int = 100
    ) -> None:
        chunks = [records[at : at + per_batch] for at in range(0, len(records), per_batch)]
        self.append(topic, [encode(chunk, codec) for chunk in chunks], partition)

    def read(self, topic: str, partition: int = 0, committed: bool = True) -> list[Seen]:
        """Every record, by a plain consumer."""
        return [one for _offset, one in self.read_with_offsets(topic, partition, committed)]

    def pairs(self, topic: str, partition: int = 0) -> list[tuple[bytes, bytes]]:
        """Keys and values of the records that have both."""
        seen = self.read(topic, partition)
        return [(one.key, one.value) for one in seen if one.key is not None and one.value is not None]

    def commit(self, group: str, topic: str, offset: int, metadata: str = "") -> None:
        """For a group without members."""
        wanted = {group: {(topic, 0): Committed(offset, metadata)}}
        assert on(self, lambda client: commit_offsets(client, wanted)) == {group: None}

    def read_with_offsets(self, topic: str, partition: int = 0, committed: bool = True) -> list[tuple[int, Seen]]:
        place = TopicPartition(topic, partition)
        consumer: Any = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            isolation_level="read_committed" if committed else "read_uncommitted",
            group_id=None,
        )
        try:
            consumer.assign([place])
            end = consumer.end_offsets([place])[place]
            consumer.seek_to_beginning(place)
            seen: list[tuple[int, Seen]] = []
            while consumer.position(place) < end:
                for one in consumer.poll(timeout_ms=500).get(place, []):
                    headers = tuple((name, value) for name, value in one.headers)
                    seen.append((one.offset, Seen(one.timestamp, one.timestamp_type, one.key, one.value, headers)))
            return seen
        finally:
            consumer.close()

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """First and next offset."""
        found: list[int] = []

        async def do(client: ClusterClient) -> None:
            await _until_led(client, topic, partition + 1)
            topics = (await client.metadata([topic])).topics
            for which in (EARLIEST, LATEST):
                offset = (await list_offsets(client, topics, [(topic, partition)], which, False))[topic, partition]
                assert isinstance(offset, int), offset
                found.append(offset)

        self._with_client(do)
        return found[0], found[1]

    def boundaries(self, topic: str, partition: int = 0) -> list[tuple[int, str]]:
        """Count and codec of each batch."""
        start, end = self.bounds(topic, partition)
        found: list[tuple[int, str]] = []

        async def do(client: ClusterClient) -> None:
            known = (await client.metadata([topic])).topics[topic]
            batches = read_batches(client, known, partition, start, end)
            found.extend([(batch.count, batch.codec) async for batch in batches])

        self._with_client(do)
        return found

    def transaction(self, topic: str, count: int, commit: bool | None = True, per_batch: int = 10) -> Any:
        """Records in a transaction, which is committed, aborted or (None) left open; then its producer is returned."""
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
        while self.bounds(topic)[1] == end:  # the answer comes before the marker is in the log
            time.sleep(0.02)
        return None

    @contextmanager
    def transactional_producers(self) -> Iterator[list[Any]]:
        """Two, for transactions one within the other."""
        made: list[Any] = [
            KafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=uuid.uuid4().hex, batch_size=300)
            for _ in range(2)
        ]
        for one in made:
            one.init_transactions()
        yield made
        for one in made:
            one.close()

    def empty_transaction(self, topic: str) -> None:
        """Leaves an invisible offset."""
        end = self.bounds(topic)[1]

        async def do(client: ClusterClient) -> None:
            transaction = TransactionalId(client, uuid.uuid4().hex, 10.0)
            await transaction.take()
            await transaction.add([(topic, 0)])
            await transaction.end(commit=True)

        self._with_client(do)
        while self.bounds(topic)[1] == end:
            time.sleep(0.02)

    def skip(self, topic: str, count: int) -> None:
        """Let an empty topic begin at a high offset."""
        cluster = replace(self.cluster, request_timeout=30.0)

        async def do(_client: ClusterClient) -> None:
            client = ClusterClient(cluster)
            await client.connect()
            found = (await client.metadata([topic])).topics[topic]
            cursor = Cursor(MirrorPartition(topic, topic, 0), 1 << 62, target_leader=found.leaders[0])
            cursor.start(Position(count, 0), 0, keeps=True)
            await fill(cursor, client, lambda: float("inf"))
            client.close()

        self._with_client(do)

    def config(self, topic: str, name: str) -> str | None:
        value: str | None = on(self, lambda client: describe_configs(client, [topic]))[topic][name].value
        return value

    def topics(self) -> set[str]:
        found: set[str] = set()

        async def do(client: ClusterClient) -> None:
            found.update((await client.metadata(None)).topics)

        self._with_client(do)
        return found

    def exists(self, topic: str) -> bool:
        found: list[bool] = []

        async def do(client: ClusterClient) -> None:
            found.append(not (await client.metadata([topic])).topics[topic].error)

        self._with_client(do)
        return found[0]

    def partitions(self, topic: str) -> int:
        counts: list[int] = []

        async def do(client: ClusterClient) -> None:
            counts.append(len((await client.metadata([topic])).topics[topic].leaders))

        self._with_client(do)
        return counts[0]

    def _with_client(self, do: Any) -> None:
        async def main() -> None:
            client = ClusterClient(self.cluster)
            try:
                await client.connect()
                await do(client)
            finally:
                client.close()

        asyncio.run(main())

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
        deadline = time.monotonic() + 60
        while sum(count for count, _codec in self.boundaries(topic)) >= count:
            assert time.monotonic() < deadline, "the broker has not compacted the topic"
            self.write(topic, [Record(0, int(time.time() * 1000), b"other", b"roll")])
            time.sleep(0.5)
        self.configure(topic, cleanup_policy="delete")  # or what is compared would go on changing, on both sides
        time.sleep(0.5)

    def place(self, topic: str, *replicas: list[int]) -> None:
        """A topic with one partition for each list of brokers, the first of which leads, and any of which may."""
        admin: Any = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        configs = {"unclean.leader.election.enable": "true"}
        admin.create_topics({topic: {"assignments": dict(enumerate(replicas)), "configs": configs}})
        admin.close()
        for partition in range(len(replicas)):
            self.bounds(topic, partition)

    def recreate(self, topic: str, count: int) -> None:
        """Delete a topic, and make another with so many records."""
        self.delete(topic)
        while True:
            try:
                self.create(topic)
                break
            except AssertionError:  # with ZooKeeper it lives on for a moment after it is gone from the metadata
                time.sleep(0.05)
        self.write(topic, some_records(count), per_batch=10)

    def leader(self, topic: str) -> int:
        found: list[int] = []

        async def do(client: ClusterClient) -> None:
            found.append((await client.metadata([topic])).topics[topic].leaders[0])

        self._with_client(do)
        return found[0]

    def until_led(self, topics: Sequence[str], leader: int, *in_sync: int) -> None:
        """Until the first partitions of these topics have this leader and these replicas in sync."""
        admin: Any = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        deadline = time.monotonic() + 60
        while True:
            firsts = [one["partitions"][0] for one in admin.describe_topics(list(topics))]
            now = {(one["leader_id"], *sorted(one["isr_nodes"])) for one in firsts}
            if now == {(leader, *in_sync)}:
                admin.close()
                return
            assert time.monotonic() < deadline, f"leader and replicas in sync of {topics} are {now}"
            time.sleep(0.05)


@dataclass(frozen=True)
class Pair:
    """The two clusters that most tests use."""

    a: Log
    b: Log

    def flow(self) -> Flow:
        """Without heartbeats, which other tests write: they would be copied whatever the topics."""
        a, b = replace(self.a.cluster, alias="A"), replace(self.b.cluster, alias="B")
        return Flow(a, b, replication_factor=1, heartbeats_replication=False)


async def _shows(client: ClusterClient, topic: str, settings: dict[str, str]) -> bool:
    """A broker says that a change is done before it shows it itself."""
    shown = (await describe_configs(client, [topic]))[topic]
    assert not isinstance(shown, BrokerError)
    return all(name in shown and shown[name].value == value for name, value in settings.items())


async def _until_led(client: ClusterClient, topic: str, partitions: int) -> None:
    """A broker says who leads a new partition before that leader knows it."""
    places = [(topic, partition) for partition in range(partitions)]
    while True:
        topics = (await client.metadata([topic])).topics
        found = await list_offsets(client, topics, places, LATEST, False)
        if all(isinstance(offset, int) for offset in found.values()):
            return
        await asyncio.sleep(0.02)


def some_records(count: int, size: int = 100, start: int = 0) -> list[Record]:
    """Distinct records, so that a missing or doubled one shows."""
    now = int(time.time() * 1000)
    return [
        Record(0, now, str(start + number).encode(), f"{start + number}-{uuid.uuid4().hex}".ljust(size, ".").encode())
        for number in range(count)
    ]


def on(log: Log, do: Callable[[ClusterClient], Awaitable[Any]]) -> Any:
    """Ask one cluster something."""

    async def main() -> Any:
        client = ClusterClient(log.cluster)
        try:
            await client.connect()
            return await do(client)
        finally:
            client.close()

    return asyncio.run(main())


def until(what: Callable[[], bool], told: Callable[[], object] = lambda: "did not happen in time") -> None:
    """Wait for it; `told` is what is shown if it does not come."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, told()
        time.sleep(0.1)
