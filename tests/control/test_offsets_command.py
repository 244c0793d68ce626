"""`heliograph offsets`: both ends of every partition, and how far a mirror is behind, read from the logs alone."""

import asyncio
import dataclasses
import json
import time
from dataclasses import replace
from pathlib import Path

from copying.lease import copy, only
from heliograph.copy.consumer_view import first_records
from heliograph.model.flow import Flow, KeptOffsets
from heliograph.model.names import NameFilter
from heliograph.service.group_report import look_at_groups
from heliograph.service.offset_report import PartitionOffsets, look_at_offsets
from heliograph.wire.cluster import ClusterClient
from logs import Pair, on, some_records
from running.command import in_process


def _look(flow: Flow, topic: str | None = None) -> list[PartitionOffsets]:
    return list(asyncio.run(look_at_offsets(flow, (flow,), topic)).partitions)


def test_bounds_position_difference_and_lag(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=2)
    pair.a.transaction(topic, 5)
    pair.a.write(topic, some_records(10))
    pair.a.write(topic, some_records(3), partition=1)
    flow = only(pair.flow(), topic)
    copy(flow)
    pair.a.delete_before(topic, 0, 2)
    first, second = _look(flow)
    assert (first.source_start, first.source_end, first.mirror_start, first.mirror_end) == (2, 16, 0, 15)
    assert (first.position, first.difference, first.lag, first.lag_seconds) == (16, -1, 0, 0.0)
    assert (second.position, second.difference, second.lag, second.problem) == (3, 0, 0, "")

    # What was aborted is no lag; what was written an hour ago is an hour old, a hole before it or not.
    pair.a.transaction(topic, 4, commit=False)
    assert (_look(flow)[0].position, _look(flow)[0].source_end, _look(flow)[0].lag) == (16, 21, 0)
    hour_ago = int(time.time() * 1000) - 3_600_000
    pair.a.write(topic, [replace(record, timestamp=hour_ago) for record in some_records(2)])
    pair.a.write(topic, some_records(5, size=50_000), partition=1)  # more than the first small fetch takes
    first, second = _look(flow, f"A.{topic}")
    assert (first.lag, second.lag) == (2, 5)
    assert first.lag_seconds is not None
    assert second.lag_seconds is not None
    assert 3600 <= first.lag_seconds < 4000
    assert 0 <= second.lag_seconds < 300

    other = f"{topic}-other"
    pair.a.create(other)
    pair.a.write(other, some_records(7))
    (row,) = _look(flow, other)
    assert (row.mirror_start, row.mirror_end, row.position, row.difference, row.lag) == (None, None, 0, None, 7)
    pair.b.create(f"A.{other}")
    pair.b.write(f"A.{other}", some_records(1))
    (row,) = _look(flow, other)
    assert (row.position, row.lag, row.lag_seconds) == (None, None, None)
    assert "the ledger has no entry for" in row.problem


def test_a_mirror_with_the_sources_offsets_differs_in_none(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    for commit in (True, False, True):
        pair.a.transaction(topic, 5, commit)
    flow = replace(only(pair.flow(), topic), kept_offsets=KeptOffsets(NameFilter((".*",))))
    copy(flow)
    (row,) = _look(flow)
    assert (row.source_end, row.difference, row.lag, row.problem) == (18, 0, 0, "")
    pair.a.commit(f"{topic}-g", topic, 12)
    ((group,),) = [asyncio.run(look_at_groups(flow, f"{topic}-g")).groups]
    assert [(partition.source_offset, partition.mirror_offset) for partition in group.partitions] == [(12, 12)]
    assert group.state == "switched-off"


def test_records_behind_large_batches_are_found_in_every_partition(pair: Pair, topic: str) -> None:
    """A broker gives a batch beyond the limits only to the first partition of a request."""
    pair.a.create(topic, partitions=6)
    for partition in range(6):
        pair.a.write(topic, some_records(1, size=900_000 if partition % 2 else 10), partition)

    async def ask(client: ClusterClient) -> dict[tuple[str, int], object]:
        topics = (await client.metadata([topic])).topics
        wanted = {(topic, partition): (0, 1) for partition in range(6)}
        return dict(await first_records(client, topics, wanted, committed_only=True))

    found = on(pair.a, ask)
    assert {partition: first.offset for (_topic, partition), first in found.items()} == dict.fromkeys(range(6), 0)


def test_the_command(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    pair.a.create(f"x-{topic}")
    pair.a.write(topic, some_records(20))
    flow = replace(pair.flow(), topics=NameFilter((topic,)))
    copy(flow)
    shown = in_process("offsets", properties, "A->B")
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "1 partition of 1 topic; nothing is behind" in shown.stdout
    pair.a.write(topic, some_records(5))
    shown = in_process("offsets", properties, topic)
    assert "0 0 25 20 0 20 0 5" in " ".join(shown.stdout.split())
    assert "1 behind, by 5 records" in shown.stdout
    (found,) = json.loads(in_process("offsets", properties, "--json").stdout)
    assert found["flow"] == "A->B"
    (row,) = found["partitions"]
    assert set(row) == {field.name for field in dataclasses.fields(PartitionOffsets)}
    assert (row["topic"], row["mirror"], row["position"], row["lag"]) == (topic, f"A.{topic}", 20, 5)
    for arguments, said in (
        ((f"{topic}x",), f"A->B has no topic {topic}x; did you mean {topic}?"),
        (("A->B", f"x-{topic}"), f"A->B does not copy topic x-{topic}: not picked by topics ({topic}.*)"),
    ):
        done = in_process("offsets", properties, *arguments)
        assert (done.exit_code, said in done.stderr) == (2, True), done.output
    pair.b.write(f"A.{topic}", some_records(30))  # so that it ends behind its source
    done = in_process("offsets", properties)
    assert (done.exit_code, "1 cannot go on" in done.stdout) == (1, True), done.output
