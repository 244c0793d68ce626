"""With the real MirrorMaker 2: its tools read what we write, ours read what it writes, and each replaces the other."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.client import MirrorClient, replication_hops, translate_offsets, upstream_clusters
from heliograph.model.connect_offsets import SourceKey, from_value
from heliograph.model.mm2_records import Checkpoint, Heartbeat, OffsetSync
from heliograph.wire.consumer_groups import Committed, committed_offsets
from heliograph.wire.records import Record, now
from logs import PATIENCE, Pair, on, some_records, until
from mm2 import JavaClient, mirror_maker
from running.command import kill, start

_FACTORS = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.", "offset.storage.", "status.storage.")


def _properties(pair: Pair, topic: str, folder: Path, source: str, target: str) -> Path:
    """One flow for both tools, with aliases that no other test uses."""
    lines = [
        f"clusters = {source}, {target}",
        f"{source}.bootstrap.servers = {pair.a.bootstrap}",
        f"{target}.bootstrap.servers = {pair.b.bootstrap}",
        f"{source}->{target}.enabled = true",
        f"{source}->{target}.topics = {topic}.*",
        f"{source}->{target}.groups = {topic}.*",
        *(f"{name}replication.factor = 1" for name in (*_FACTORS, "config.storage.")),
        "offset.storage.partitions = 3",
        f"{target}.offset.flush.interval.ms = 5000",
        "refresh.topics.interval.seconds = 2",
        "refresh.groups.interval.seconds = 1",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 1",
    ]
    file = folder / "mm2.properties"
    file.write_text("\n".join([*lines, ""]))
    return file


@contextmanager
def _heliograph(properties: Path, log: Path) -> Iterator[None]:
    process = start("run", properties, log=log)
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0, log.read_text()
    finally:
        kill(process)


class _Producer:
    """Writes numbered records to three partitions all the time."""

    def __init__(self, pair: Pair, topic: str) -> None:
        self._pair = pair
        self._topic = topic
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def __enter__(self) -> "_Producer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._end.is_set():
            for partition in range(3):
                records = [Record(0, now(), b"key", f"{self.count + n}".encode()) for n in range(50)]
                self._pair.a.write(self._topic, records, partition)
            self.count += 50
            self._end.wait(0.3)


def test_mm2_is_taken_over_from_and_handed_back_to_without_loss_or_repetition(
    pair: Pair, topic: str, tmp_path: Path
) -> None:
    """A producer runs all the time. MM2 is killed, takes over from us, and we take over again."""
    pair.a.create(topic, partitions=3)
    properties = _properties(pair, topic, tmp_path, "east", "west")
    mirror, log = f"east.{topic}", tmp_path / "log"

    def copied(least: int) -> None:
        def enough() -> bool:
            return pair.b.exists(mirror) and all(pair.b.bounds(mirror, partition)[1] > least for partition in range(3))

        until(enough)

    with _Producer(pair, topic) as producer:
        with mirror_maker(properties) as mm2:
            copied(100)
            mm2.kill()
        with _heliograph(properties, log):
            copied(producer.count)
        with mirror_maker(properties) as mm2:
            copied(producer.count)
            mm2.stop()
        with _heliograph(properties, log):
            copied(producer.count)
            producer.stop()
            copied(producer.count - 1)
            _check_positions(pair, topic, mirror, producer.count)
    for partition in range(3):
        assert pair.b.read(mirror, partition) == pair.a.read(topic, partition)
        assert len(pair.b.read(mirror, partition)) == producer.count
    text = log.read_text()
    assert text.count(f"mirror {mirror}-0 taken over from MirrorMaker 2") == 2
    assert "waiting for MirrorMaker 2 to stop" in text


def _check_positions(pair: Pair, topic: str, mirror: str, end: int) -> None:
    """Mirror and source are the same, so offsets must be: also of what MM2 has copied, before us and between."""
    positions = {f"{topic}-group-{number}": end * number // 11 for number in range(12)}
    for group, offset in positions.items():
        pair.a.commit(group, topic, offset)

    def offsets_on_target() -> dict[str, int]:
        committed = on(pair.b, lambda client: committed_offsets(client, list(positions)))
        return {
            group: offsets[mirror, 0].offset
            for group, offsets in committed.items()
            if isinstance(offsets, dict) and offsets
        }

    until(lambda: offsets_on_target() == positions)


@dataclass(frozen=True)
class _Copied:
    """What MM2 has copied, and a file that would continue with it."""

    topic: str
    properties: Path


@pytest.fixture(scope="module")
def copied_by_mm2(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> _Copied:
    topic, mirror = "by-mm2", "north.by-mm2"
    pair.a.create(topic)
    pair.a.write(topic, some_records(300))
    pair.a.commit(f"{topic}-group", topic, 120, "some metadata")
    properties = _properties(pair, topic, tmp_path_factory.mktemp("mm2"), "north", "south")
    with mirror_maker(properties) as mm2:
        until(lambda: pair.b.exists(mirror) and pair.b.bounds(mirror)[1] == 300)
        until(lambda: pair.b.exists("north.checkpoints.internal") and pair.b.pairs("north.checkpoints.internal") != [])
        mm2.stop()
    return _Copied(topic, properties)


def test_mm2s_records_are_byte_for_byte_ours(pair: Pair, copied_by_mm2: _Copied) -> None:
    """What MM2 wrote, read and written again by us, is the same; and so are its entries in Connect's offsets."""
    for log, name, kind in (
        (pair.b, "north.checkpoints.internal", Checkpoint),
        (pair.a, "mm2-offset-syncs.south.internal", OffsetSync),
        (pair.b, "heartbeats", Heartbeat),
    ):
        records = log.pairs(name)
        assert records
        for key, value in records:
            assert kind.from_record(key, value).to_record() == (key, value)
    entries = [entry for part in range(3) for entry in pair.b.read("mm2-offsets.north.internal", part)]
    ours = [(SourceKey("MirrorSourceConnector", "north", copied_by_mm2.topic, 0).to_bytes(), 299)]
    assert [(entry.key, from_value(entry.value)) for entry in entries if entry.key == ours[0][0] and entry.value][
        -1:
    ] == ours


def test_a_mirror_that_mm2_has_not_copied_from_this_source_is_not_taken_over(
    pair: Pair, copied_by_mm2: _Copied, tmp_path: Path
) -> None:
    mirror, log = f"north.{copied_by_mm2.topic}", tmp_path / "log"
    pair.b.write(mirror, some_records(1, start=77777))
    with _heliograph(copied_by_mm2.properties, log):
        until(lambda: "cannot be taken over" in log.read_text())
        until(lambda: "the ledger has no entry for" in log.read_text())
    assert pair.b.bounds(mirror)[1] == 301


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClient]:
    with JavaClient() as client:
        yield client


def test_mm2s_client_reads_what_we_write_and_answers_as_ours(
    pair: Pair, topic: str, tmp_path: Path, java: JavaClient
) -> None:
    pair.a.create(topic, partitions=2)
    for _ in range(3):
        pair.a.transaction(topic, 7)
    pair.a.write(topic, some_records(20), partition=1)
    group = f"{topic}-group"
    pair.a.commit(group, topic, 11, "note")
    properties = _properties(pair, topic, tmp_path, "sun", "moon")
    bootstrap = pair.b.bootstrap
    with _heliograph(properties, tmp_path / "log"):
        # The flow back only writes heartbeats, to the source; they are copied from there as any topic.
        until(lambda: "sun.heartbeats" in MirrorClient(bootstrap).heartbeat_topics())
        until(lambda: "sun.checkpoints.internal" in MirrorClient(bootstrap).checkpoint_topics())
        # A checkpoint that is written before the mirror has the group's records has an earlier offset.
        expected = {(f"sun.{topic}", 0): Committed(10, "note")}  # offset 7 was a marker
        until(lambda: translate_offsets(bootstrap, "sun", group) == expected)
    client = MirrorClient(bootstrap)
    assert java.heartbeat_topics(bootstrap) == client.heartbeat_topics()
    assert java.checkpoint_topics(bootstrap) == client.checkpoint_topics()
    assert java.upstream_clusters(bootstrap) == upstream_clusters(bootstrap) >= {"sun"}
    for alias in ("sun", "nowhere"):
        assert java.replication_hops(bootstrap, alias) == replication_hops(bootstrap, alias)
    assert replication_hops(bootstrap, "sun") == 1
    assert {f"sun.{topic}", "sun.heartbeats"} <= client.remote_topics("sun") <= client.remote_topics()
    ours = translate_offsets(bootstrap, "sun", group)
    assert java.translate_offsets(bootstrap, "sun", group) == {at: (o.offset, o.metadata) for at, o in ours.items()}
    assert ours == expected


def test_mm2_translates_with_our_offset_syncs(pair: Pair, topic: str, tmp_path: Path) -> None:
    """MM2 finds nothing to copy after us, so that our pairs are all that it has."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(400))
    # Where MM2 has run before, we keep its books: without them it would begin anew.
    pair.b.create("mm2-offsets.up.internal", partitions=3, cleanup_policy="compact")
    properties = _properties(pair, topic, tmp_path, "up", "down")
    mirror, group = f"up.{topic}", f"{topic}-group"
    with _heliograph(properties, tmp_path / "log"):
        until(lambda: pair.b.exists(mirror) and pair.b.bounds(mirror)[1] == 400)
    pair.a.commit(group, topic, 400)
    with mirror_maker(properties) as mm2:
        until(lambda: Committed(400) in _there(pair, group).values())
        mm2.stop()
    assert pair.b.bounds(mirror) == (0, 400)


def _there(pair: Pair, group: str) -> dict[tuple[str, int], Committed]:
    committed = on(pair.b, lambda client: committed_offsets(client, [group]))[group]
    return dict(committed) if isinstance(committed, dict) else {}
