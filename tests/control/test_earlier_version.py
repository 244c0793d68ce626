"""Internal topics as commit add3f37 (version 0.1.0) wrote them: they are read, and copying continues from there.

The records are in `written_by_add3f37.json`; `written_by_add3f37.md` says how they were recorded.
"""

import asyncio
import base64
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from copying.lease import copy
from heliograph.control.checkpoints import Checkpoints
from heliograph.copy.ledger import Ledger
from heliograph.copy.signals import EndLease, Grant, Report, command_for
from heliograph.model.flow import Flow, Groups
from heliograph.model.internal_topics import COMMANDS, PROGRESS, STATUS, intervals_topic, signals_topic
from heliograph.model.mm2_records import Checkpoint, Heartbeat, OffsetSync
from heliograph.model.names import NameFilter
from heliograph.model.partitions import MirrorPartition, Position, producer_id
from heliograph.service.flow_status import FlowStatus, from_json, last_status
from heliograph.wire.batches import one_batch, sequence
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.metadata import id_text
from heliograph.wire.records import Record, now, own_topic, write_records
from logs import Log, Pair, on, until

_ALIAS, _TOPIC, _MIRROR, _GROUP = "earlier", "orders", "earlier.orders", "billing"
_PARTITION = MirrorPartition(_TOPIC, _MIRROR, 0)
_CHECKPOINT = Checkpoint(_GROUP, _MIRROR, 0, 16, 12, "as of then")
_SOURCE_END, _MIRROR_END = 34, 29


@dataclass(frozen=True)
class _Recorded:
    """Everything that the run has left; `source_id` and `mirror_id` are topic ids of that time."""

    source_id: str
    mirror_id: str
    mirror: list[bytes]  # batches
    topics: dict[str, list[Record]]


def _recorded() -> _Recorded:
    fields = json.loads(Path(__file__).with_name("written_by_add3f37.json").read_text())
    ids = fields.pop("source_id"), fields.pop("mirror_id")
    mirror = [base64.b64decode(batch) for batch in fields.pop("mirror")]
    return _Recorded(*ids, mirror, {name: [_record(*row) for row in rows] for name, rows in fields.items()})


def _record(timestamp: int, key: str, value: str | None) -> Record:
    return Record(0, timestamp, base64.b64decode(key), None if value is None else base64.b64decode(value))


def _pairs(name: str) -> list[tuple[bytes, bytes]]:
    records = _recorded().topics[name]
    return [(record.key, record.value) for record in records if record.key is not None and record.value is not None]


# --- records ------------------------------------------------------------------------------------------------------


def test_mm2s_records_have_the_same_bytes() -> None:
    checkpoints = [Checkpoint.from_record(*pair) for pair in _pairs("checkpoints")]
    syncs = [OffsetSync.from_record(*pair) for pair in _pairs("offset_syncs")]
    heartbeats = [Heartbeat.from_record(*pair) for pair in _pairs("heartbeats")]
    assert set(checkpoints) == {_CHECKPOINT}
    assert syncs[-1] == OffsetSync(_TOPIC, 0, _SOURCE_END - 1, _MIRROR_END - 1)
    assert {(heartbeat.source, heartbeat.target) for heartbeat in heartbeats} == {(_ALIAS, "B")}
    for name, values in (("checkpoints", checkpoints), ("offset_syncs", syncs), ("heartbeats", heartbeats)):
        assert [value.to_record() for value in values] == _pairs(name)


def _is_caught_up(status: FlowStatus) -> bool:
    counts = status.mirrors, status.partitions, status.leases, status.records, status.lag
    problems = status.refusals, status.notices, status.failed_topics
    return (status.name, *counts) == (f"{_ALIAS}->B", 1, 1, 1, _MIRROR_END, 0) and not any(problems)


def test_mirrors_have_the_same_producer_id_and_sequence_numbers() -> None:
    batches = [one_batch(memoryview(data)) for data in _recorded().mirror]
    assert {batch.producer_id for batch in batches} == {producer_id(f"{_ALIAS}->B", _PARTITION)}
    assert [batch.base_sequence for batch in batches] == [sequence(batch.base_offset) for batch in batches]
    assert batches[-1].next_offset == _MIRROR_END


def test_a_status_is_read() -> None:
    ((_key, value),) = _pairs("status")
    assert _is_caught_up(from_json(json.loads(value)))


def test_progress_is_read() -> None:
    reports = [Report.from_record(*pair) for pair in _pairs("progress")]
    assert all(report.lease and report.attempt >= 0 for report in reports)
    assert not any(report.refusals or report.notices for report in reports)
    progress = [report.changed[_PARTITION] for report in reports if report.changed]
    assert progress[-1].position == Position(_SOURCE_END, _MIRROR_END)
    assert (progress[-1].source_end, progress[-1].high_watermark) == (_SOURCE_END, _SOURCE_END)
    assert progress[-1].copied.records == _MIRROR_END


def test_commands_are_read() -> None:
    (lease,) = {key.decode() for key, _value in _pairs("progress")}
    commands = _pairs("commands")
    decoded = [command_for(lease, *command) for command in commands]
    grants = [command for command in decoded if isinstance(command, Grant)]
    assert [grant.ask for grant in grants] == list(range(1, len(grants) + 1))
    assert {type(command) for command in decoded} == {Grant, EndLease}
    assert all(command_for(f"not-{lease}", *command) is None for command in commands)


# --- continuing ---------------------------------------------------------------------------------------------------


def _append(log: Log, first: int, count: int) -> None:
    numbers = range(first, first + count)
    log.write(_TOPIC, [Record(0, 1_000_000 + n, b"key-%d" % n, b"value-%d" % n) for n in numbers])


def _transaction(log: Log, first: int, count: int, commit: bool) -> None:
    producer: Any = KafkaProducer(bootstrap_servers=log.bootstrap, transactional_id=f"recorded-{first}")
    producer.init_transactions()
    producer.begin_transaction()
    for n in range(first, first + count):
        producer.send(_TOPIC, b"value-%d" % n, b"key-%d" % n, partition=0, timestamp_ms=1_000_000 + n)
    producer.flush()
    end = log.bounds(_TOPIC)[1]
    producer.commit_transaction() if commit else producer.abort_transaction()
    producer.close()
    until(lambda: log.bounds(_TOPIC)[1] == end + 1)  # EndTxn is answered before its marker is in the log


def _write_source(log: Log) -> None:
    """As the run found it: 34 offsets, of which 29 have committed records."""
    log.create(_TOPIC)
    _append(log, 0, 10)
    _transaction(log, 100, 3, commit=False)
    _append(log, 10, 10)
    _transaction(log, 20, 4, commit=True)
    _append(log, 24, 5)
    assert log.bounds(_TOPIC) == (0, _SOURCE_END)


def _write_target(pair: Pair, recorded: _Recorded) -> None:
    """As the run left it, but for the ids of the topics."""
    log = pair.b
    log.create(_MIRROR, message_timestamp_type="CreateTime", compression_type="producer")
    log.append(_MIRROR, [bytes(8) + batch[8:] for batch in recorded.mirror])  # a base offset of 0, as Produce needs
    log.create(intervals_topic(_ALIAS), cleanup_policy="compact")
    log.create(signals_topic(_ALIAS), partitions=3)
    log.create(f"{_ALIAS}.checkpoints.internal", cleanup_policy="compact")
    ids = {recorded.source_id: _id(pair.a, _TOPIC), recorded.mirror_id: _id(pair.b, _MIRROR)}

    def with_ids(data: bytes | None) -> bytes | None:
        for old, new in ids.items():
            data = None if data is None else data.replace(old.encode(), new.encode())
        return data

    async def write_all(client: ClusterClient) -> None:
        for name, topic, partition in (
            ("intervals", intervals_topic(_ALIAS), 0),
            ("commands", signals_topic(_ALIAS), COMMANDS),
            ("progress", signals_topic(_ALIAS), PROGRESS),
            ("status", signals_topic(_ALIAS), STATUS),
            ("checkpoints", f"{_ALIAS}.checkpoints.internal", 0),
        ):
            # With the current time: a broker refuses records that are ahead of its clock.
            records = [
                Record(0, now(), with_ids(record.key), with_ids(record.value)) for record in recorded.topics[name]
            ]
            await write_records(client, await own_topic(client, topic), partition, records)

    on(log, write_all)


def _id(log: Log, topic: str) -> str:
    async def ask(client: ClusterClient) -> str:
        return id_text((await client.metadata([topic])).topics[topic].id)

    return str(on(log, ask))


async def _check_groups(flow: Flow, pair: Pair) -> None:
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    try:
        checkpoints = Checkpoints(flow, source, target, Ledger(target, _ALIAS))
        await checkpoints.load()
        key = _GROUP, _MIRROR, 0
        assert checkpoints.latest == {key: _CHECKPOINT}
        await checkpoints.refresh_groups()
        assert checkpoints.groups == (_GROUP,)
        outcome = await checkpoints.run()
        assert (outcome.emitted, outcome.missing, outcome.early) == ([], [], [])
        assert checkpoints.mirror_checkpoints[key].checkpoint == _CHECKPOINT
        await asyncio.to_thread(pair.a.commit, _GROUP, _TOPIC, 30)
        assert [(entry.upstream, entry.downstream) for entry in (await checkpoints.run()).emitted] == [(30, 25)]
        seen = await last_status(target, _ALIAS)
        assert seen is not None
        assert _is_caught_up(seen.status)
    finally:
        source.close()
        target.close()


def test_copying_and_checkpoints_continue(pair: Pair) -> None:
    recorded = _recorded()
    _write_source(pair.a)
    _write_target(pair, recorded)
    pair.a.commit(_GROUP, _TOPIC, 16, "as of then")
    flow = replace(
        pair.flow(),
        source=replace(pair.a.cluster, alias=_ALIAS),
        topics=NameFilter((_TOPIC,)),
        groups=Groups(NameFilter((_GROUP,)), replication_factor=1),
    )
    assert flow.name == f"{_ALIAS}->B"
    _append(pair.a, 29, 6)
    _transaction(pair.a, 200, 3, commit=False)
    _append(pair.a, 35, 3)
    outcome = copy(flow)
    assert (outcome.refusals, outcome.notices) == ((), ())
    assert pair.b.read(_MIRROR) == pair.a.read(_TOPIC)
    assert pair.b.bounds(_MIRROR) == (0, _MIRROR_END + 9)
    asyncio.run(_check_groups(flow, pair))
