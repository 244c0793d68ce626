"""From a file to clusters and flows."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.config import load
from heliograph.config.read.properties import parse
from heliograph.model.backoff import Backoff
from heliograph.model.connecting import CANONICAL_BOOTSTRAP_SERVERS, Connecting
from heliograph.model.flow import (
    HEARTBEAT,
    Cluster,
    Flow,
    Groups,
    Heartbeats,
    KeptOffsets,
    OffsetSyncs,
    Policies,
    Reading,
    TopicSync,
    Writing,
)
from heliograph.model.names import NameFilter
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy

from .files import CLUSTERS, MINIMAL, deployment, flow, notes, patterns, warnings

A = Cluster("A", (("a", 9092),))
B = Cluster("B", (("b", 9092),))


def test_the_least_file_gives_one_eachwith_all_defaults() -> None:
    least = deployment(MINIMAL)
    assert least.clusters == {"A": A, "B": B}
    assert least.flows == (Flow(A, B),)
    assert least.warnings == ()
    assert least.notes == ()


def test_a_file_is_read_from_disk_and_keeps_the_name_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(MINIMAL + "A->B.topcs = x\n")
    loaded = load(file)
    assert loaded.file == str(file)
    assert str(loaded.warnings[0]).startswith(f"{file}:5: ")
    assert load(str(file)) == loaded
    assert pickle.loads(pickle.dumps(loaded)) == loaded


def test_every_supported_setting_reaches_the_flow() -> None:
    everything = r"""
A->B.topics = orders.*, customers
A->B.topics.exclude = .*\\.tmp
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
replication.policy.separator = _
replication.policy.internal.topic.separator.enabled = false
replication.factor = -1
tasks.max = 4
refresh.topics.enabled = TRUE
refresh.topics.interval.seconds = 5
heartbeats.replication.enabled = false
config.properties.exclude = a.*
sync.topic.configs.interval.seconds = 7
sync.topic.acls.enabled = false
A->B.use.defaults.from = source
emit.offset-syncs.enabled = false
offset.lag.max = 10
offset-syncs.topic.location = target
offset-syncs.topic.replication.factor = 1
groups = g.*
groups.exclude = h
refresh.groups.interval.seconds = 8
emit.checkpoints.interval.seconds = 9
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 10
heliograph.sync.group.deletes = true
checkpoints.topic.replication.factor = 2
emit.heartbeats.interval.seconds = 3
heartbeats.topic.replication.factor = 4
heliograph.partitions = 6
heliograph.offsets = preserve
heliograph.preserve.topics = orders.*
heliograph.preserve.max.fill = 1000
heliograph.preserve.max.gap = 10
A.client.id = reader
B.client.id = writer
A.consumer.request.timeout.ms = 1500
B.admin.request.timeout.ms = 2500
B.producer.request.timeout.ms = 3500
A.consumer.fetch.max.bytes = 10
A.consumer.max.partition.fetch.bytes = 11
A.consumer.fetch.min.bytes = 12
A.consumer.fetch.max.wait.ms = 250
B.producer.max.request.size = 13
send.buffer.bytes = 1000
B.producer.receive.buffer.bytes = 2000
A.socket.connection.setup.timeout.ms = 3000
socket.connection.setup.timeout.max.ms = 4000
A.consumer.reconnect.backoff.ms = 500
A.consumer.reconnect.backoff.max.ms = 600
retry.backoff.ms = 70
A.consumer.retry.backoff.max.ms = 6000
connections.max.idle.ms = 80
B.admin.metadata.max.age.ms = 90
A.client.dns.lookup = resolve_canonical_bootstrap_servers_only
B.offset.flush.interval.ms = 1500
security.protocol = plaintext
heliograph.buffer.memory = 2097152
heliograph.lease.seconds = 1.5
"""
    read = deployment(MINIMAL + everything)
    assert read.warnings == ()
    assert read.notes == ()
    of_target = Connecting(send_buffer=1000, setup_timeout=Backoff(5.0, 4.0), max_idle=0.08)
    of_source = replace(of_target, setup_timeout=Backoff(3.0, 4.0), dns_lookup=CANONICAL_BOOTSTRAP_SERVERS)
    assert read.flows == (
        Flow(
            source=Cluster("A", (("a", 9092),), "reader", 30.0, connecting=of_source),
            target=Cluster("B", (("b", 9092),), "writer", 2.5, connecting=replace(of_target, metadata_max_age=0.09)),
            reader=Cluster(
                "A", (("a", 9092),), "reader", 1.5, connecting=replace(of_source, reconnect=Backoff(0.5, 0.6))
            ),
            writer=Cluster("B", (("b", 9092),), "writer", 3.5, connecting=replace(of_target, receive_buffer=2000)),
            retry_backoff=Backoff(0.07, 6.0),
            flush_offsets_every=1.5,
            policy=IdentityReplicationPolicy("A", "_", "."),
            topics=NameFilter(("orders.*", "customers"), (r".*\.tmp",)),
            heartbeats_replication=False,
            replication_factor=-1,
            tasks_max=4,
            refresh_topics_every=5.0,
            least_partitions=6,
            kept_offsets=KeptOffsets(NameFilter(("orders.*",)), 1000, 10),
            topic_sync=TopicSync(7.0, None, NameFilter(("a.*",)), True),
            offset_syncs=OffsetSyncs(False, True, 10, 1),
            groups=Groups(NameFilter(("g.*",), ("h",)), 8.0, 9.0, 10.0, 2, deletes=True),
            heartbeats=Heartbeats(3.0, 4),
            reading=Reading(10, 11, 12, 0.25),
            writing=Writing(13, 3.5),
            buffer_memory=2097152,
            lease_seconds=1.5,
        ),
    )


def test_only_enabled_flows_are_built_in_the_order_of_the_clusters() -> None:
    three = "clusters = C, A, B\n" + "".join(f"{alias}.bootstrap.servers = h:1\n" for alias in "ABC")
    read = deployment(three + "B->A.enabled = true\nA->B.enabled = false\nC->B.enabled = true\n")
    assert [built.name for built in read.flows] == ["C->B", "B->A"]
    assert list(read.clusters) == ["C", "A", "B"]


def test_enabled_at_top_level_enables_every_eachthat_emits_heartbeats() -> None:
    both = deployment(CLUSTERS + "enabled = true\n")
    assert [built.name for built in both.flows] == ["A->B", "B->A"]
    single = deployment(CLUSTERS + "enabled = true\nB->A.enabled = false\n")
    assert [flow.name for flow in single.flows] == ["A->B"]
    silent = deployment(CLUSTERS + "enabled = true\nB->A.emit.heartbeats.enabled = false\n")
    assert [flow.name for flow in silent.flows] == ["A->B"]


@pytest.mark.parametrize(
    "name",
    [
        "IdentityReplicationPolicy",
        "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
    ],
)
def test_the_identity_policy_has_several_names(name: str) -> None:
    assert flow(f"replication.policy.class = {name}\n").policy == IdentityReplicationPolicy("A")


@pytest.mark.parametrize(
    "name", ["DefaultReplicationPolicy", "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"]
)
def test_the_default_policy_has_two_names(name: str) -> None:
    assert flow(f"replication.policy.class = {name}\n").policy == DefaultReplicationPolicy()


def test_strimzis_empty_separator_works_with_identity() -> None:
    old_strimzi = (
        "replication.policy.class = io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy\n"
        "replication.policy.separator =\n"
    )
    assert flow(old_strimzi).mirror_name("orders") == "orders"


def test_each_eachhas_an_identity_policy_of_its_own_source() -> None:
    read = deployment(MINIMAL + "B->A.enabled = true\nreplication.policy.class = IdentityReplicationPolicy\n")
    assert [built.policy for built in read.flows] == [IdentityReplicationPolicy("A"), IdentityReplicationPolicy("B")]


def test_an_empty_topic_list_selects_no_topic() -> None:
    assert not flow("topics =\n").selects("orders")
    assert flow("topics.exclude =\n").topics.matches("a.replica")


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("host:9092", (("host", 9092),)),
        (" one:1 , two:2 ", (("one", 1), ("two", 2))),
        ("[::1]:9092", (("::1", 9092),)),
        ("[fe80::1%eth0]:9092, 10.0.0.1:9093", (("fe80::1%eth0", 9092), ("10.0.0.1", 9093))),
        ("A_host1:9092", (("A_host1", 9092),)),
        ("PLAINTEXT://host:9092", (("host", 9092),)),
    ],
)
def test_addresses_come_in_several_shapes(text: str, addresses: tuple[tuple[str, int], ...]) -> None:
    read = deployment(
        f"clusters = A, B\nA.bootstrap.servers = {text}\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
    )
    assert read.clusters["A"].bootstrap_servers == addresses


def test_an_address_at_top_level_is_for_clusters_without_one_of_their_own() -> None:
    text = "clusters = A, B\nbootstrap.servers = all:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
    read = deployment(text)
    assert read.clusters["A"].bootstrap_servers == (("all", 1),)
    assert read.clusters["B"].bootstrap_servers == (("b", 1),)
    assert read.warnings == ()


def test_an_interval_below_zero_means_never() -> None:
    assert flow("refresh.topics.interval.seconds = -1\n").refresh_topics_every is None
    assert flow("refresh.topics.enabled = false\nrefresh.topics.interval.seconds = 0\n").refresh_topics_every is None
    assert flow("emit.heartbeats.enabled = false\n").heartbeats.every is None
    assert flow("").groups.sync_every is None


def test_disabled_pairs_still_write_heartbeats() -> None:
    read = deployment(MINIMAL)
    assert [(built.name, set(built.parts)) for built in read.heartbeat_only_flows] == [("B->A", {HEARTBEAT})]
    assert deployment(MINIMAL + "B->A.emit.heartbeats.enabled = false\n").heartbeat_only_flows == ()
    assert deployment(MINIMAL + "emit.heartbeats.enabled = false\n").heartbeat_only_flows == ()
    assert deployment(MINIMAL + "B->A.enabled = true\n").heartbeat_only_flows == ()


def test_continuation_lines_and_comments_do_not_shift_line_numbers() -> None:
    text = "# a comment \\\n! another\n\ntopics = a, \\\n   b, \\\r\n   c\nx\n  y:z\rw w\n"
    entries = parse(text.encode(), "f")
    assert [(entry.line, entry.key, entry.value) for entry in entries] == [
        (4, "topics", "a, b, c"),
        (7, "x", ""),
        (8, "y", "z"),
        (9, "w", "w"),
    ]


def test_values_may_be_continued_over_lines_and_later_warnings_count_right() -> None:
    added = "A->B.topics = orders, \\\n    customers\n\n# next is line 8\nA->B.topcs = x\n"
    assert patterns(flow(added).topics).include == ("orders", "customers")
    assert warnings(added) == ["mm2.properties:9: unknown setting 'A->B.topcs': did you mean 'A->B.topics'?"]


def test_a_byte_order_mark_is_ignored() -> None:
    (entry,) = parse(b"\xef\xbb\xbfclusters = A", "f")
    assert entry.key == "clusters"


def test_a_single_backslash_in_a_pattern_is_dropped_as_in_java_and_noted() -> None:
    assert patterns(flow("topics = a\\.b\n").topics).include == ("a.b",)
    assert notes("topics = a\\.b\n") == [
        "mm2.properties:5: topics is read as 'a.b': the file format drops single backslashes, write them twice"
    ]
    assert notes("topics = a\\\\.b\n") == []


def test_clusters_may_have_dots_in_their_names_and_begin_alike() -> None:
    text = """\
clusters = eu, eu.west, source
eu.bootstrap.servers = eu:1
eu.west.bootstrap.servers = west:2
source.bootstrap.servers = src:3
eu->eu.west.enabled = true
eu.west->eu.enabled = true
eu.west->eu.topics = w
source->eu.enabled = true
source.consumer.fetch.max.bytes = 9
eu.consumer.fetch.max.bytes = 7
eu.west.consumer.fetch.max.bytes = 8
"""
    read = deployment(text)
    assert read.warnings == ()
    assert {alias: cluster.bootstrap_servers[0][0] for alias, cluster in read.clusters.items()} == {
        "eu": "eu",
        "eu.west": "west",
        "source": "src",
    }
    assert {built.name: built.reading.fetch_max_bytes for built in read.flows} == {
        "eu->eu.west": 7,
        "eu.west->eu": 8,
        "source->eu": 9,
    }
    assert {built.name: patterns(built.topics).include for built in read.flows}["eu.west->eu"] == ("w",)


def test_an_alias_may_be_named_like_the_beginning_of_a_setting() -> None:
    text = """\
clusters = topics, consumer
topics.bootstrap.servers = t:1
consumer.bootstrap.servers = c:1
topics->consumer.enabled = true
topics.exclude = x
"""
    read = deployment(text)
    assert read.warnings == ()
    assert patterns(read.flows[0].topics).exclude == ("x",)


def test_policies_limits_and_isolation_reach_the_flow() -> None:
    read = flow(
        "heliograph.on.data.loss = fail\n"
        "A->B.heliograph.on.recreated.topic = continue\n"
        "heliograph.on.foreign.writer = continue\n"
        "heliograph.on.refused.record = continue\n"
        "heliograph.max.bytes.per.second = 1000000\n"
        "heliograph.raise.mirror.limits = false\n"
        "A.consumer.isolation.level = read_uncommitted\n"
        "A->B.producer.override.batch.size = 327680\n"
    )
    assert read.policies == Policies("fail", "continue", "continue", "continue")
    assert (read.max_bytes_per_second, read.may_raise_limits) == (1_000_000, False)
    assert (read.reading.committed_only, read.writing.join_up_to) == (False, 327680)
