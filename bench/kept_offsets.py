"""What it costs to keep the source's offsets: filling up a mirror's beginning, gaps between records, plain copying.

Each part is copied twice, once with the offsets kept and once translated, by one copier without Spark on two fresh
one-broker clusters; the ratio is what counts. `make bench-offsets`; ARGS="--scale 0.1" for less.
"""

import argparse
import asyncio
import sys
import time
from dataclasses import replace

from clusters import broker_spec, client_for

from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.topic_sync import sync_topics
from heliograph.copy.copier import Copier
from heliograph.copy.cursor import Cursor, ResumePoint
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.start_filler import fill
from heliograph.copy.work import Work
from heliograph.model.flow import Cluster, Flow, KeptOffsets, Writing
from heliograph.model.names import NameFilter
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.sandbox import Sandbox, SandboxCluster
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.batches import mirror_header, one_batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import Record, encode
from heliograph.wire.topic_requests import NewTopic, create_topics
from heliograph.wire.transactions import TransactionalId

_PATIENCE = 120.0
_PARTITIONS = 6
_PER_BATCH = 10
_WRITERS = 4


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Stage:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.source = ClusterClient(flow.source)
        self._target = ClusterClient(flow.target)

    async def open(self) -> None:
        await asyncio.gather(self.source.connect(), self._target.connect())

    def close(self) -> None:
        self.source.close()
        self._target.close()

    async def create(self, topic: str, partitions: int) -> None:
        assert not any((await create_topics(self.source, [NewTopic(topic, partitions, 1)])).values())
        while any(node < 0 for node in await self.leaders(topic)) or len(await self.leaders(topic)) < partitions:
            await asyncio.sleep(0.05)

    async def leaders(self, topic: str) -> list[int]:
        return list((await self.source.metadata([topic])).topics[topic].leaders.values())

    async def copier(self, topic: str, keep: bool) -> Copier:
        """A copier of one topic, to a separate mirror for each kind of offsets."""
        kept = KeptOffsets(NameFilter((".*",)), most_gap=1 << 30) if keep else KeptOffsets()
        alias = "K" if keep else "T"
        source = replace(self._flow.source, alias=alias)
        flow = replace(self._flow, source=source, topics=NameFilter((topic,)), kept_offsets=kept)
        await ensure_internal_topics(flow, self.source, self._target)
        synced = await sync_topics(flow, self.source, self._target, (await self.source.metadata(None)).topics)
        work = tuple(
            MirrorPartition(topic, flow.mirror_name(topic), number) for number in range(synced.partitions[topic])
        )
        return Copier(Work(flow, f"{topic}-{alias}", 3600.0, work))

    async def copied(self, topic: str, keep: bool) -> float:
        """Returns the seconds until everything is in the mirror."""
        copier = await self.copier(topic, keep)
        began = time.monotonic()
        lease = asyncio.create_task(copier.run())
        while not lease.done() and not all(_is_through(cursor) for cursor in copier.cursors):
            await asyncio.sleep(0.01)
        took = time.monotonic() - began
        copier.stop()
        outcome = await lease
        assert (outcome.refusals, outcome.notices) == ((), ())
        return took


def _is_through(cursor: Cursor) -> bool:
    return cursor.position is not None and cursor.position.source >= cursor.source.end >= 0


async def _transact(
    client: ClusterClient, topic: str, name: str, numbers: list[int], every: float = 0.0, width: int = _PARTITIONS
) -> None:
    """Transactions over some partitions in turn, each one batch per partition; every tenth is aborted."""
    transaction = TransactionalId(client, name, 60.0)
    await transaction.init_producer()
    batch = one_batch(memoryview(encode([Record(0, 1_700_000_000_000, b"k", b"v" * 100, ())] * _PER_BATCH)))
    connection = await client.connection((await client.metadata([topic])).topics[topic].leaders[0])
    due = time.monotonic()
    for number in numbers:
        places = [(topic, (number * width + turn) % _PARTITIONS) for turn in range(width)]
        await transaction.add(places)
        parts = [
            PartitionBatch(
                *place, (mirror_header(batch, transaction.producer_id, at, transaction.epoch), batch.records)
            )
            for place in places
            for at in [transaction.sequence(place, batch.count)]
        ]
        for answer in await append(connection, parts, 30.0, transaction.name):
            assert not answer.error, answer
        await transaction.end(commit=number % 10 != 9)
        due += every
        await asyncio.sleep(max(0.0, due - time.monotonic()))


async def _beginning(stage: Stage, offset: int) -> None:
    await stage.create("late", 1)
    (leader,) = await stage.leaders("late")
    cursor = Cursor(MirrorPartition("late", "late", 0), 1 << 62)
    cursor.mirror.locate(leader, "")
    cursor.start(ResumePoint(Position(offset, 0), preserves_offsets=True))
    await fill(cursor, stage.source, LeaseClock(float("inf")))
    last = PartitionBatch("late", 0, [encode([Record(0, 1, b"k", b"v", ())])])
    await append(await stage.source.connection(leader), [last], 30.0)
    took = await stage.copied("late", keep=True)
    _say(f"a source that begins at offset {offset}: filled up in {took:.1f} s, {offset / took / 1e6:.1f} M offsets/s")


async def _gaps(stage: Stage, count: int) -> None:
    await stage.create("transactions", _PARTITIONS)
    began = time.monotonic()
    numbers = [list(range(number, count, _WRITERS)) for number in range(_WRITERS)]
    await asyncio.gather(
        *(_transact(stage.source, "transactions", f"writer-{n}", some) for n, some in enumerate(numbers))
    )
    wrote = count / (time.monotonic() - began)
    translated = await stage.copied("transactions", keep=False)
    kept = await stage.copied("transactions", keep=True)
    _say(
        f"{count} transactions over {_PARTITIONS} partitions, written at {wrote:.0f}/s: translated "
        f"{count / translated:.0f}/s, kept {count / kept:.0f}/s, that is {count * _PARTITIONS / kept:.0f} gaps/s"
    )


async def _live(stage: Stage, rate: int, seconds: float, width: int) -> None:
    topic = f"live-{width}"
    await stage.create(topic, _PARTITIONS)
    copier = await stage.copier(topic, keep=True)
    lease = asyncio.create_task(copier.run())
    while not all(cursor.position is not None for cursor in copier.cursors):
        await asyncio.sleep(0.01)
    servers = ",".join(f"{host}:{port}" for host, port in stage.source.cluster.bootstrap_servers)
    options = {"--write-to": servers, "--rate": rate, "--seconds": seconds, "--width": width}
    arguments = [str(part) for option in options.items() for part in option]
    writer = await asyncio.create_subprocess_exec(sys.executable, __file__, *arguments)
    ended = asyncio.create_task(writer.wait())
    lags: list[int] = []
    while not ended.done():
        await asyncio.sleep(0.05)
        lags.append(max(c.source.end - c.position.source for c in copier.cursors if c.position is not None))
    began = time.monotonic()
    while not all(_is_through(cursor) for cursor in copier.cursors):
        await asyncio.sleep(0.005)
    behind = time.monotonic() - began
    count = sum(cursor.position.source for cursor in copier.cursors if cursor.position is not None)
    copier.stop()
    outcome = await lease
    assert (outcome.refusals, outcome.notices) == ((), ())
    later = sorted(lags[len(lags) // 2 :])
    each = _PER_BATCH + 1
    _say(
        f"{count / each / width / seconds:.0f} transactions/s for {seconds:.0f} s, each over {width} of {_PARTITIONS} "
        f"partitions: in the second half {later[len(later) // 2] / each:.0f} transactions behind (median), "
        f"{later[-1] / each:.0f} at most; {behind:.2f} s behind at the end"
    )


async def _write(servers: str, rate: int, seconds: float, width: int) -> None:
    addresses = tuple((host, int(port)) for host, port in (address.split(":") for address in servers.split(",")))
    client = ClusterClient(Cluster("writer", addresses))
    await client.connect()
    count = list(range(int(rate * seconds / _WRITERS)))
    every = _WRITERS / rate
    await asyncio.gather(
        *(_transact(client, f"live-{width}", f"live-{n}", count, every, width) for n in range(_WRITERS))
    )
    client.close()


async def _plain(stage: Stage, batches: int) -> None:
    await stage.create("plain", _PARTITIONS)
    batch = encode([Record(0, 1_700_000_000_000, b"k", b"v" * 1000, ())] * 100)
    connection = await stage.source.connection((await stage.leaders("plain"))[0])
    for _ in range(batches):
        await append(connection, [PartitionBatch("plain", number, [batch]) for number in range(_PARTITIONS)], 30.0)
    size = batches * _PARTITIONS * len(batch) / 1e6
    translated, kept = await stage.copied("plain", keep=False), await stage.copied("plain", keep=True)
    _say(f"plain records, {size:.0f} MB: translated {size / translated:.0f} MB/s, kept {size / kept:.0f} MB/s")


async def _measure(flow: Flow, scale: float, rate: int, seconds: float) -> None:
    stage = Stage(flow)
    await stage.open()
    try:
        await _plain(stage, int(1000 * scale) or 1)
        await _beginning(stage, int(50_000_000 * scale))
        await _gaps(stage, int(5000 * scale))
        for width in (1, 2, _PARTITIONS):
            await _live(stage, rate, seconds, width)
    finally:
        stage.close()


def _cluster(alias: str, sandbox: SandboxCluster) -> Cluster:
    return replace(client_for(sandbox, _PATIENCE).cluster, alias=alias)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--write-to", help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=int, default=200, help="transactions per second of the live part")
    parser.add_argument("--width", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=20.0, help="its length")
    options = parser.parse_args()
    if options.write_to:
        asyncio.run(_write(options.write_to, options.rate, options.seconds, options.width))
        return
    with Sandbox() as sandbox:
        spec = broker_spec(heap_mb=1024)
        a, b = sandbox.start({"S": spec, "T": spec})
        flow = Flow(_cluster("S", a), _cluster("T", b), replication_factor=1, writing=Writing())
        asyncio.run(_measure(flow, options.scale, options.rate, options.seconds * options.scale))


if __name__ == "__main__":
    main()
