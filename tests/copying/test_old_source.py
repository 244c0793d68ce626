"""The oldest source: Kafka 1.1 with ZooKeeper, no topic ids, no leader epochs in fetches."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from copying.lease import copy, only, settled
from heliograph.model.flow import FAIL, Policies, Reading, Writing
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.wire.consumer_groups import (
    DEAD,
    EMPTY,
    Committed,
    commit_offsets,
    committed_offsets,
    consumer_groups,
    group_states,
)
from heliograph.wire.topic_requests import describe_configs
from logs import Log, Pair, on, some_records, until


@pytest.fixture(scope="module")
def old() -> Iterator[Log]:
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"old": ClusterSpec(version="1.1.1", fast_start=True)})
        yield Log(cluster.bootstrap)


@pytest.mark.parametrize("codec", [0, 1, 2, 3])  # zstd came with 2.1
def test_records_of_a_1_1_cluster_are_copied_as_they_are(old: Log, pair: Pair, topic: str, codec: int) -> None:
    old.create(topic, partitions=2)
    for partition in range(2):
        old.write(topic, some_records(300), partition, codec=codec)
    flow = only(replace(pair.flow(), source=replace(old.cluster, alias="old")), topic)
    flow = replace(flow, writing=Writing(join_up_to=0))
    assert copy(flow).refusals == ()
    old.write(topic, some_records(20), partition=1, codec=codec)
    assert copy(flow).records == 20
    for partition in range(2):
        assert pair.b.read(f"old.{topic}", partition) == old.read(topic, partition)
        assert pair.b.boundaries(f"old.{topic}", partition) == old.boundaries(topic, partition)


@pytest.mark.parametrize(
    ("version", "codec"), [("0.9.0", 0), ("0.9.0", 1), ("0.10.0", 0), ("0.10.0", 2), ("0.10.0", 3)]
)
def test_messages_in_the_formats_before_2_are_converted(
    old: Log, pair: Pair, topic: str, version: str, codec: int
) -> None:
    """Format 0 has no times; a 1.1 broker writes what the topic's message.format.version says, and converts."""
    old.create(topic, message_format_version=version)
    plain = [replace(record, headers=()) for record in some_records(250)]
    old.write(topic, plain, codec=codec, per_batch=20)
    flow = only(replace(pair.flow(), source=replace(old.cluster, alias="old")), topic)
    flow = replace(flow, reading=Reading(max_partition_fetch_bytes=5000))
    copy(flow, lambda copier: copier.counts.records > 30 or settled(copier))
    assert copy(flow).refusals == ()
    read = old.read(topic)
    assert [(record.key, record.value) for record in read] == [(record.key, record.value) for record in plain]
    read = [replace(record, timestamp=-1) if record.timestamp is None else record for record in read]
    assert ({record.timestamp for record in read} == {-1}) == (version == "0.9.0")
    seen = pair.b.read(f"old.{topic}")
    assert [(record.timestamp, record.key, record.value, record.headers) for record in seen] == [
        (record.timestamp, record.key, record.value, record.headers) for record in read
    ]


def test_old_and_new_formats_in_one_log_are_copied(old: Log, pair: Pair, topic: str) -> None:
    old.create(topic, message_format_version="0.10.0")
    old.write(topic, some_records(50), per_batch=10)
    old.configure(topic, message_format_version="1.1")
    old.write(topic, some_records(50), per_batch=10)
    flow = only(replace(pair.flow(), source=replace(old.cluster, alias="old")), topic)
    assert copy(flow).refusals == ()
    assert pair.b.read(f"old.{topic}") == old.read(topic)


def test_an_old_target_gets_lz4_where_the_source_has_zstd(old: Log, pair: Pair, topic: str) -> None:
    """A broker before 2.1 answers UNSUPPORTED_COMPRESSION_TYPE to zstd."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(300), codec=4)
    pair.a.write(topic, some_records(50), codec=2)
    flow = only(replace(pair.flow(), target=replace(old.cluster, alias="old")), topic)
    assert copy(flow).refusals == ()
    assert old.read(f"A.{topic}") == pair.a.read(topic)
    assert {codec for _count, codec in old.boundaries(f"A.{topic}")} == {"lz4", "snappy"}


def _created(old: Log, topic: str) -> bool:
    try:
        old.create(topic)
    except AssertionError as refused:
        if "TOPIC_ALREADY_EXISTS" not in str(refused):
            raise
        return False
    return True


def test_a_recreated_topic_without_topic_ids_is_recognized_by_its_records(old: Log, pair: Pair, topic: str) -> None:
    for name, more in ((f"{topic}-shorter", 20), (f"{topic}-longer", 200)):
        old.create(name)
        old.write(name, some_records(100))
        flow = only(replace(pair.flow(), source=replace(old.cluster, alias="old")), name)
        flow = replace(flow, policies=Policies(data_loss=FAIL))
        copy(flow)
        old.delete(name)
        until(partial(_created, old, name))  # an old broker deletes topics slowly
        old.write(name, some_records(more))
        (refusal,) = copy(flow).refusals
        assert refusal.reason in ("recreated-topic", "source-truncated")
        assert pair.b.bounds(f"old.{name}") == (0, 100)


def test_only_the_given_settings_of_an_old_cluster_are_changed(old: Log, topic: str) -> None:
    """Before 2.3 a broker only knows how to replace all settings of a topic at once."""
    old.create(topic, retention_ms="1000000", segment_ms="2000000")
    old.configure(topic, retention_ms="3000000", max_message_bytes="1234567")
    found = on(old, lambda client: describe_configs(client, [topic]))[topic]
    own = {name: config.value for name, config in found.items() if config.own}
    assert own == {"retention.ms": "3000000", "segment.ms": "2000000", "max.message.bytes": "1234567"}


def test_groups_of_an_old_cluster_are_requested_one_by_one(old: Log, topic: str) -> None:
    """No states in the list of groups, no question about several groups at once."""
    old.create(topic)
    names = [f"{topic}-{number}" for number in range(3)]
    wanted = {name: {(topic, 0): Committed(number, "m")} for number, name in enumerate(names)}
    assert on(old, lambda client: commit_offsets(client, wanted)) == dict.fromkeys(names)
    assert on(old, lambda client: committed_offsets(client, names)) == wanted
    states = on(old, lambda client: group_states(client, [*names, "nobody"]))
    assert states == {**dict.fromkeys(names, EMPTY), "nobody": DEAD}
    assert set(names) <= set(on(old, consumer_groups))
