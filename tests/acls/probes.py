"""What each feature of a running flow does, seen from outside: provoked, and then there or not."""

import itertools
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from heliograph.control.mm2_offsets import offsets_topic
from heliograph.control.packing import Packer
from heliograph.control.required_acls import Feature
from heliograph.model.connect_offsets import SourceKey, from_value, to_value
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import dead_letters_topic, ledger_topic
from heliograph.model.ledger_records import JOURNAL
from heliograph.wire.acl_requests import ALLOW, LITERAL, READ, Acl, create_acls, topic_acls
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets, committed_offsets
from heliograph.wire.offsets import EARLIEST, LATEST, delete_before, list_offsets
from heliograph.wire.records import Record, own_topic, read_all, write, write_records
from heliograph.wire.topic_requests import (
    NewTopic,
    change_configs,
    create_partitions,
    create_topics,
    describe_configs,
)
from heliograph.wire.transactions import TransactionalId
from waiting import async_until

Works = Callable[[], Awaitable[bool]]


class Side:
    """One cluster, as a super user."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client
        self._transactions = TransactionalId(client, uuid.uuid4().hex, 10.0)

    async def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """-1 where there is none."""
        topics = (await self.client.metadata([topic])).topics
        key = topic, partition
        first, last = [
            (await list_offsets(self.client, topics, [key], which, False))[key] for which in (EARLIEST, LATEST)
        ]
        return (first if isinstance(first, int) else -1), (last if isinstance(last, int) else -1)

    async def end(self, topic: str) -> int:
        return (await self.bounds(topic))[1]

    async def create(self, topic: str, **configs: str) -> None:
        settings = tuple((key.replace("_", "."), value) for key, value in configs.items())
        assert await create_topics(self.client, [NewTopic(topic, 1, 1, settings)]) == {topic: None}

        async def is_led() -> bool:
            return await self.end(topic) >= 0

        await async_until(is_led)

    async def write(self, topic: str, size: int = 10, timestamp: int | None = None) -> None:
        moment = int(time.time() * 1000) if timestamp is None else timestamp
        known = await own_topic(self.client, topic)
        await write_records(self.client, known, 0, [Record(0, moment, b"key", b"x" * size)])

    async def marker(self, topic: str) -> None:
        """An offset without a record."""
        before = await self.end(topic)
        async with self._transactions.lock:
            if not self._transactions.ours:
                await self._transactions.init_producer()
            await self._transactions.mark([(topic, 0)])

        async def is_written() -> bool:
            return await self.end(topic) > before

        await async_until(is_written)

    async def configure(self, topic: str, name: str, value: str) -> None:
        assert await change_configs(self.client, {topic: {name: value}}) == {topic: None}
        await async_until(lambda: self._shows(topic, name, value))

    async def _shows(self, topic: str, name: str, value: str) -> bool:
        return await self.config(topic, name) == value

    async def config(self, topic: str, name: str) -> str | None:
        configs = (await describe_configs(self.client, [topic]))[topic]
        return configs[name].value if isinstance(configs, dict) else None

    async def partitions(self, topic: str) -> int:
        return len((await self.client.metadata([topic])).topics[topic].leaders)

    async def exists(self, topic: str) -> bool:
        return not (await self.client.metadata([topic])).topics[topic].error


class Said(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def find(self, pattern: str) -> list[str]:
        return [text for text in self.texts if re.search(pattern, text)]


@dataclass(frozen=True)
class Probe:
    """`provoke` returns how to see that the feature works; `said` is how the log says that it is off."""

    provoke: Callable[[], Awaitable[Works]]
    said: str


_WITHOUT_RIGHT = r".*(AUTHORIZATION_FAILED|needs ALTER permission)"
_PARTITION = r"-0 \(mirror \S+\) (stopped|is waiting)"


class Probes:
    """Of a flow that copies the topics that begin with `base`, and syncs the group of that name."""

    def __init__(self, flow: Flow, base: str, source: ClusterClient, target: ClusterClient) -> None:
        self.flow, self.base, self.a, self.b = flow, base, Side(source), Side(target)
        self.packer: Packer | None = None  # of the running flow
        self._numbers, self._commits = itertools.count(1), itertools.count(1)
        self.mirror = flow.mirror_name(base)
        hidden = f"topic {base} is not mirrored: it cannot be described"
        self.of: dict[Feature, Probe] = {
            Feature.COPYING: Probe(self._copying, f"({hidden}|{base}{_PARTITION}|lease 0 failed)"),
            Feature.NEW_MIRRORS: Probe(self._new_mirrors, rf"topic {base}-new-\d+ is not mirrored"),
            Feature.MORE_PARTITIONS: Probe(self._more_partitions, f"mirror {self.mirror}-wide could not be grown"),
            Feature.LARGE_BATCHES: Probe(self._large_batches, f"{base}-large{_PARTITION}"),
            Feature.TRIMMING: Probe(self._trimming, "the journal of .* cannot be trimmed"),
            Feature.CONFIGS: Probe(self._configs, f"settings of {base}: "),
            Feature.ACLS: Probe(self._acls, "access rules could not be synced|rule .* could not be created"),
            Feature.OFFSET_SYNCS: Probe(self._offset_syncs, "offset syncs could not be synced"),
            Feature.TAKE_OVER: Probe(self._take_over, "are not taken over"),
            Feature.HAND_BACK: Probe(self._hand_back, "offsets for MirrorMaker 2 could not be synced"),
            Feature.CHECKPOINTS: Probe(
                self._checkpoints,
                f"({hidden}|checkpoints could not be synced|offsets of group {base} are not translated)",
            ),
            Feature.GROUP_OFFSETS: Probe(self._group_offsets, f"group {base} is left alone"),
            Feature.HEARTBEATS: Probe(self._heartbeats, "heartbeats could not be synced"),
            Feature.PRESERVE: Probe(self._preserve, f"{base}-kept({_PARTITION}|.*but DeleteRecords fails)"),
            Feature.DEAD_LETTERS: Probe(self._dead_letters, f"{base}-dead{_PARTITION}"),
        }

    def says_why(self, feature: Feature, said: Said) -> list[str]:
        return said.find(f"({self.of[feature].said}){_WITHOUT_RIGHT}")

    async def set_up(self) -> None:
        for kind in ("", "-wide", "-large", "-kept", "-dead"):
            await self.a.create(f"{self.base}{kind}")
        for _ in range(200):
            await self.a.write(self.base)
        await self.a.write(f"{self.base}-kept")
        await self.b.create(offsets_topic(self.flow), cleanup_policy="compact")

    async def _copying(self) -> Works:
        before = await self.b.end(self.mirror)
        await self.a.marker(self.base)
        await self.a.write(self.base)
        return self._grows(self.mirror, before)

    def _grows(self, topic: str, before: int, side: Side | None = None) -> Works:
        async def works() -> bool:
            return await (side or self.b).end(topic) > before

        return works

    async def _new_mirrors(self) -> Works:
        topic = f"{self.base}-new-{next(self._numbers)}"
        await self.a.create(topic)

        async def works() -> bool:
            return await self.b.exists(self.flow.mirror_name(topic))

        return works

    async def _more_partitions(self) -> Works:
        wanted = await self.a.partitions(f"{self.base}-wide") + 1
        assert await create_partitions(self.a.client, {f"{self.base}-wide": wanted}) == {f"{self.base}-wide": None}

        async def works() -> bool:
            return await self.b.partitions(f"{self.mirror}-wide") >= wanted

        return works

    async def _large_batches(self) -> Works:
        await self.b.configure(f"{self.mirror}-large", "max.message.bytes", "2000")
        await self.a.write(f"{self.base}-large", size=5000)
        wanted = await self.a.end(f"{self.base}-large")
        return self._grows(f"{self.mirror}-large", wanted - 1)

    async def _trimming(self) -> Works:
        topic = ledger_topic(self.flow.source.alias)
        before = (await self.b.bounds(topic, JOURNAL))[0]

        async def works() -> bool:
            assert self.packer is not None
            await self.packer.pack()
            return (await self.b.bounds(topic, JOURNAL))[0] > before

        return works

    async def _configs(self) -> Works:
        wanted = str(10**9 + next(self._numbers))
        await self.a.configure(self.base, "retention.ms", wanted)

        async def works() -> bool:
            return await self.b.config(self.mirror, "retention.ms") == wanted

        return works

    async def _acls(self) -> Works:
        acl = Acl(self.base, LITERAL, f"User:reader-{next(self._numbers)}", "*", READ, ALLOW)
        assert await create_acls(self.a.client, [acl]) == [None]

        async def works() -> bool:
            return any(found.principal == acl.principal for found in await topic_acls(self.b.client) or ())

        return works

    async def _offset_syncs(self) -> Works:
        topic = self.flow.policy.offset_syncs_topic(self.flow.target.alias)
        before = await self.a.end(topic)
        await self.a.marker(self.base)
        await self.a.write(self.base)
        return self._grows(topic, before, self.a)

    async def _take_over(self) -> Works:
        """A topic whose first record MirrorMaker 2 has copied."""
        topic = f"{self.base}-mm2-{next(self._numbers)}"
        moment = int(time.time() * 1000)
        await self.b.create(self.flow.mirror_name(topic))
        await self.b.write(self.flow.mirror_name(topic), timestamp=moment)
        offsets = await own_topic(self.b.client, offsets_topic(self.flow))
        key = SourceKey(self.flow.connect_offsets.connector, self.flow.source.alias, topic, 0).to_bytes()
        await write(self.b.client, offsets, 0, [(key, to_value(0))])
        await self.a.create(topic)
        await self.a.write(topic, timestamp=moment)
        await self.a.write(topic)
        return self._grows(self.flow.mirror_name(topic), 1)

    async def _hand_back(self) -> Works:
        key = SourceKey(self.flow.connect_offsets.connector, self.flow.source.alias, self.base, 0).to_bytes()
        await self.a.write(self.base)
        wanted = await self.a.end(self.base) - 1
        topic = await own_topic(self.b.client, offsets_topic(self.flow))

        async def works() -> bool:
            values = [record.value async for record in read_all(self.b.client, topic, 0) if record.key == key]
            last = from_value(values[-1]) if values and values[-1] is not None else None
            return last is not None and last >= wanted

        return works

    async def _commit(self) -> int:
        """The group goes forward among records that are copied."""
        offset = next(self._commits)
        assert await commit_offsets(self.a.client, {self.base: {(self.base, 0): Committed(offset)}}) == {
            self.base: None
        }
        return offset

    async def _checkpoints(self) -> Works:
        topic = self.flow.policy.checkpoints_topic(self.flow.source.alias)
        before = await self.b.end(topic)
        await self._commit()
        return self._grows(topic, before)

    async def _group_offsets(self) -> Works:
        wanted = await self._commit()

        async def works() -> bool:
            known = (await committed_offsets(self.b.client, [self.base]))[self.base]
            return isinstance(known, dict) and (self.mirror, 0) in known and known[self.mirror, 0].offset >= wanted

        return works

    async def _heartbeats(self) -> Works:
        topic = self.flow.policy.heartbeats_topic()
        return self._grows(topic, max(await self.b.end(topic), 0))

    async def _preserve(self) -> Works:
        await self.a.marker(f"{self.base}-kept")
        await self.a.write(f"{self.base}-kept")
        topic = await own_topic(self.a.client, f"{self.base}-kept")
        start = (await self.a.bounds(f"{self.base}-kept"))[0] + 1
        key = f"{self.base}-kept", 0
        assert await delete_before(self.a.client, {key: topic.leaders[0]}, {key: start}) == {key: None}
        wanted = start, await self.a.end(f"{self.base}-kept")

        async def works() -> bool:
            return await self.b.bounds(f"{self.mirror}-kept") == wanted

        return works

    async def _dead_letters(self) -> Works:
        await self.b.configure(f"{self.mirror}-dead", "message.timestamp.before.max.ms", "3600000")
        topic = dead_letters_topic(self.flow.source.alias)
        before = await self.b.end(topic)
        await self.a.write(f"{self.base}-dead", timestamp=1_000_000)
        return self._grows(topic, before)
