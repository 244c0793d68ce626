"""No key of a file goes unmentioned: it is acted on, or there is a warning or a note with its line."""

from __future__ import annotations

import pytest

from heliograph.config import ConfigNotice
from heliograph.config.declare.catalogue import settings
from heliograph.config.declare.setting import Setting

from .files import MINIMAL, deployment, notes, warnings

THIRTY = r"""# production, two data centres
clusters = primary, backup
primary.bootstrap.servers = p1:9092, p2:9092, \
    p3:9092
backup.bootstrap.servers = b1:9092

primary->backup.enabled = true
primary->backup.topics = orders.*, customers
primary->backup.topcs.exclude = .*\\.tmp
backup->primary.enabled = false

# replication
replication.factor = 3
replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy
replication.policy.seperator = _
tasks.max = 8
refresh.topics.interval.seconds = 30
refresh.groups.interval.seconds = 30
sync.topic.configs.enabled = true
sync.topic.acls.enabled = false
emit.heartbeats.interval.seconds = 5
emit.checkpoints.interval.seconds = 30
sync.group.offsets.enabled = true
offset-syncs.topic.replication.factor = 3
checkpoints.topic.replication.factor = 3
heartbeats.topic.replication.factor = 3
offset.storage.replication.factor = 3
status.storage.replication.factor = 3
config.storage.replication.factor = 3
backup.offset.flush.interval.ms = 10000
primary.consumer.fetch.max.byte = 1048576
primary.consumer.max.poll.records = 1000
backup.producer.compression.type = zstd
backup.producer.max.request.size = 2097152
primary->backup.transforms.one.type = org.example.One
"""


def test_a_file_of_thirty_settings_with_three_typos_gives_exactly_three_warnings() -> None:
    read = deployment(THIRTY)
    assert [str(warning) for warning in read.warnings] == [
        "mm2.properties:9: unknown setting 'primary->backup.topcs.exclude': "
        "did you mean 'primary->backup.topics.exclude'?",
        "mm2.properties:15: unknown setting 'replication.policy.seperator': "
        "did you mean 'replication.policy.separator'?",
        "mm2.properties:31: unknown setting 'primary.consumer.fetch.max.byte': did you mean "
        "'primary.consumer.fetch.max.bytes'?",
    ]
    assert {note.line for note in read.notes} == {27, 28, 29, 32, 35}


def test_a_known_setting_that_is_not_supported_gives_one_note() -> None:
    assert notes("ssl.provider = X\n") == [
        "mm2.properties:5: ssl.provider is ignored: it selects an implementation in Java"
    ]
    assert notes("A->B.ssl.provider = X\n") == [
        "mm2.properties:5: A->B.ssl.provider is ignored: it selects an implementation in Java"
    ]
    assert warnings("ssl.provider = X\n") == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("use.incremental.alter.configs = never", "settings are always changed one by one"),
        ("consumer.poll.timeout.ms = 10", "nothing is polled"),
        ("add.source.alias.to.metrics = true", "names its source and target"),
        ("tasks.max.enforce = false", "never more leases than `tasks.max`"),
        ("A->B.task.index = 0", "which Heliograph does not have"),
        ("errors.deadletterqueue.topic.name = dlq", "for sink connectors only"),
        ("errors.retry.timeout = -1", "Heliograph retries failures by its own rules"),
        ("A->B.exactly.once.support = required", "always appended exactly once"),
    ],
)
def test_an_ignored_setting_says_why(line: str, says: str) -> None:
    (note,) = notes(line + "\n")
    assert "is ignored: " in note
    assert says in note


def test_a_setting_that_batch_copying_makes_irrelevant_says_why() -> None:
    (note,) = notes("A->B.producer.override.linger.ms = 100\n")
    assert note.startswith("mm2.properties:5: A->B.producer.override.linger.ms is ignored: nothing waits")
    (note,) = notes("B.producer.linger.ms = 100\n")
    assert "is ignored: nothing waits to be sent" in note


@pytest.mark.parametrize(
    "setting", [setting for setting in settings() if not setting.supported], ids=lambda each: each.name
)
def test_every_ignored_setting_is_accepted_and_noted_at_each_of_its_locations(setting: Setting[object]) -> None:
    for location in (*setting.where.read, *setting.where.also):
        key = location.key(setting.name.replace(".*", ".something.of.their.own"))
        read = deployment(MINIMAL + f"{key} = x\n")
        assert [(note.line, note.key) for note in read.notes] == [(5, key)]
        assert read.warnings == ()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("A->B.topcs = x", "unknown setting 'A->B.topcs': did you mean 'A->B.topics'?"),
        ("tasks.maximum = 3", "unknown setting 'tasks.maximum': did you mean 'tasks.max'?"),
        ("sync.topic.acl.enabled = x", "did you mean 'sync.topic.acls.enabled'?"),
        ("offset.sync.topic.location = x", "did you mean 'offset-syncs.topic.location'?"),
        ("A.consumer.isolation.levle = x", "did you mean 'A.consumer.isolation.level'?"),
        ("A->B.producer.overide.linger.ms = 1", "did you mean 'A->B.producer.override.linger.ms'?"),
        ("offset.storage.replication.facto = 1", "did you mean 'offset.storage.replication.factor'?"),
        ("heliograph.lease.second = 1", "did you mean 'heliograph.lease.seconds'?"),
        ("A->B.frobnicate = 1", "unknown setting 'A->B.frobnicate': it is ignored"),
        ("A->B = true", "unknown setting 'A->B': did you mean 'A->B.enabled'?"),
        ("B->A.enable = true", "did you mean 'B->A.enabled'? (old documentation leaves out the 'd')"),
        ("emit.heartbeats = false", "did you mean 'emit.heartbeats.enabled'? (the setting ends in '.enabled')"),
        ("A->B.topics.whitelist = x", "did you mean 'A->B.topics'? (it belongs to MirrorMaker 1)"),
        ("groups.whitelist = x", "did you mean 'groups'? (it belongs to MirrorMaker 1)"),
        ("Q.bootstrap.servers = q:1", "unknown setting 'Q.bootstrap.servers': Q is not in 'clusters' (A, B)"),
        ("a.bootstrap.servers = q:1", "a is not in 'clusters' (A, B); did you mean 'A.bootstrap.servers'?"),
        ("A.topics = x", "'A.topics' has no effect: topics is read from 'A->B.topics' or 'topics'"),
        ("A.enabled = false", "'A.enabled' has no effect: enabled is read from 'A->B.enabled' or 'enabled'"),
        ("A->B.bootstrap.servers = x:1", "bootstrap.servers is read from 'A.bootstrap.servers' or 'bootstrap.servers'"),
        (
            "B.replication.factor = 3",
            "replication.factor is read from 'A->B.replication.factor' or 'replication.factor'",
        ),
        ("A->B.target.consumer.fetch.min.bytes = 3", "'A->B.target.consumer.fetch.min.bytes' has no effect"),
        ("topics = orders  # ours", "the '#' is part of the last pattern: a comment needs a line of its own"),
    ],
)
def test_mistakes_are_warned_about_with_what_to_write_instead(line: str, says: str) -> None:
    (warning,) = deployment(MINIMAL + line + "\n").warnings
    assert (warning.line, warning.file) == (5, "mm2.properties")
    assert says in str(warning)


def test_a_misspelt_alias_of_some_length_is_recognised() -> None:
    text = THIRTY + "primry.consumer.fetch.max.bytes = 1\n"
    assert str(deployment(text).warnings[-1]).endswith(
        "primry is not in 'clusters' (primary, backup); did you mean 'primary.consumer.fetch.max.bytes'?"
    )


def test_a_worker_setting_where_mm2_ignores_it_is_noted_with_its_location() -> None:
    assert notes("offset.flush.timeout.ms = 1\n") == [
        "mm2.properties:5: offset.flush.timeout.ms is ignored: it is for Connect's workers, which Heliograph replaces "
        "(and MM2 reads it only as 'B.offset.flush.timeout.ms')"
    ]
    assert warnings("offset.flush.interval.ms = 1\n") == [
        "mm2.properties:5: 'offset.flush.interval.ms' has no effect: offset.flush.interval.ms is read from "
        "'B.offset.flush.interval.ms'"
    ]
    assert notes("transforms.one.type = org.example.One\n") == [
        "mm2.properties:5: transforms.one.type is ignored: records are copied as they are, and transforms are "
        "NOT applied "
        "(and MM2 reads it only as 'A->B.transforms.*')"
    ]


def test_a_setting_of_flows_only_is_warned_about_at_top_level() -> None:
    assert warnings("use.defaults.from = source\n") == [
        "mm2.properties:5: 'use.defaults.from' has no effect: use.defaults.from is read from 'A->B.use.defaults.from'"
    ]


def test_settings_of_a_disabled_flow_are_noted() -> None:
    assert notes("B->A.topics = x\nB.consumer.fetch.max.bytes = 1\nA.producer.max.request.size = 1\n") == [
        "mm2.properties:5: B->A.topics has no effect: B->A is not enabled",
        "mm2.properties:6: B.consumer.fetch.max.bytes has no effect: no enabled flow reads from B",
        "mm2.properties:7: A.producer.max.request.size has no effect: no enabled flow writes to A",
    ]
    assert notes("B->A.enabled = false\n") == []


def test_one_address_for_several_clusters_is_warned_about() -> None:
    read = deployment("clusters = A, B\nbootstrap.servers = all:1\nA->B.enabled = true\n")
    assert [str(warning) for warning in read.warnings] == [
        "mm2.properties:2: 'bootstrap.servers' gives A, B the same address: write 'A.bootstrap.servers' and so on"
    ]


def test_the_example_file_that_comes_with_kafka_gives_no_warning() -> None:
    added = """\
B->A.enabled = true
B->A.topics = .*
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
"""
    assert warnings(added) == []
    assert len(notes(added)) == 3


def test_notices_are_in_the_order_of_the_file_and_compare_by_value() -> None:
    read = deployment(MINIMAL + "zzz.yyy = 1\naaa.bbb = 2\n")
    assert [warning.line for warning in read.warnings] == [5, 6]
    assert read.warnings[0] == ConfigNotice(5, "zzz.yyy", "unknown setting 'zzz.yyy': it is ignored", "mm2.properties")
