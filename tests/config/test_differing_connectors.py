"""Connectors of one flow that do not agree. MM2 runs each by its own settings; so do we where it makes a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.config import ConfigError
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy

from .test_connectors import connector, error, read

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"


def test_a_heartbeat_connector_needs_no_policy(tmp_path: Path) -> None:
    source = connector("Source", replication_policy_class=IDENTITY, replication_policy_separator="-")
    deployment = read(tmp_path, [source, connector("Heartbeat")])
    assert deployment.flows[0].policy == IdentityReplicationPolicy("A", "-")
    assert (deployment.warnings, deployment.notes) == ((), ())


def test_the_policy_of_a_heartbeat_connector_has_no_effect(tmp_path: Path) -> None:
    deployment = read(tmp_path, [connector("Source"), connector("Heartbeat", replication_policy_class=IDENTITY)])
    assert deployment.flows[0].policy == DefaultReplicationPolicy()
    assert deployment.warnings == ()
    assert [note.text for note in deployment.notes] == [
        "connector my-heartbeat: replication.policy.class has no effect: the flow uses that of connector my-source"
    ]


@pytest.mark.parametrize(
    ("of_source", "of_checkpoint"),
    [
        (IDENTITY, "IdentityReplicationPolicy"),
        ("io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy", IDENTITY),
        ("com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy", f" {IDENTITY} "),
        (DEFAULT, None),
        (None, "DefaultReplicationPolicy"),
    ],
)
def test_classes_are_compared_by_what_they_mean(
    tmp_path: Path, of_source: str | None, of_checkpoint: str | None
) -> None:
    pair = (("Source", of_source), ("Checkpoint", of_checkpoint))
    files = [connector(kind, **({} if name is None else {"replication_policy_class": name})) for kind, name in pair]
    deployment = read(tmp_path, files)
    assert deployment.flows[0].checkpoint_policy is None
    assert deployment.warnings == ()


def test_a_setting_at_its_default_is_as_good_as_none(tmp_path: Path) -> None:
    settings = {
        "replication_policy_separator": ".",
        "replication_policy_internal_topic_separator_enabled": "TRUE",
        "offset__syncs_topic_location": "source",
        "topics": ".*",
        "emit_offset__syncs_enabled": "true",
    }
    deployment = read(tmp_path, [connector("Source"), connector("Checkpoint", **settings)])
    assert (deployment.warnings, deployment.notes) == ((), ())


def test_checkpoints_are_named_by_the_policy_of_the_checkpoint_connector(tmp_path: Path) -> None:
    source = connector("Source", replication_policy_class=IDENTITY, replication_policy_separator="_")
    deployment = read(tmp_path, [source, connector("Checkpoint")])
    (flow,) = deployment.flows
    assert flow.policy == IdentityReplicationPolicy("A", "_")
    assert flow.checkpoint_policy == DefaultReplicationPolicy()
    assert (flow.mirror_name("x"), flow.name_in_checkpoints("x")) == ("x", "A.x")
    assert flow.checkpoints_topic == "A.checkpoints.internal"
    assert flow.offset_syncs_topic == "mm2-offset-syncs_B_internal"
    assert [warning.text for warning in deployment.warnings] == [
        "A->B: checkpoints call the mirror of a topic 'x' 'A.x', but it is 'x': no group's offsets are synced to it, "
        "as with MirrorMaker 2; give the checkpoint connector the replication.policy settings of the source connector"
    ]


def test_checkpoints_with_another_separator_are_no_mistake_if_they_name_the_mirrors(tmp_path: Path) -> None:
    source = connector("Source", replication_policy_class=IDENTITY)
    checkpoint = connector("Checkpoint", replication_policy_class=IDENTITY, replication_policy_separator="_")
    deployment = read(tmp_path, [source, checkpoint])
    assert deployment.flows[0].checkpoints_topic == "A_checkpoints_internal"
    assert deployment.warnings == ()


def test_a_policy_that_only_the_checkpoint_connector_names_is_checked(tmp_path: Path) -> None:
    says = error(tmp_path, [connector("Source"), connector("Checkpoint", replication_policy_separator="/")])
    assert "connector my-checkpoint: replication.policy.separator: '/' cannot be part of a topic name" in says


def test_offset_syncs_are_where_the_source_connector_says(tmp_path: Path) -> None:
    source = connector("Source", offset__syncs_topic_location="target")
    deployment = read(tmp_path, [source, connector("Checkpoint")])
    assert deployment.flows[0].offset_syncs.on_target
    assert [warning.text for warning in deployment.warnings] == [
        "connector my-source: offset-syncs.topic.location: connector my-source writes offset syncs to the target, "
        "connector my-checkpoint would look for them on the source. MirrorMaker 2 writes no checkpoints then; "
        "Heliograph does, as it needs no offset syncs"
    ]
    other = connector("Checkpoint", offset__syncs_topic_location="target")
    deployment = read(tmp_path, [connector("Source"), other])
    assert not deployment.flows[0].offset_syncs.on_target
    (warning,) = deployment.warnings
    assert warning.text.startswith("connector my-checkpoint: offset-syncs.topic.location: connector my-source writes")


def test_a_heartbeat_connector_needs_the_address_of_its_target(tmp_path: Path) -> None:
    beat = connector("Heartbeat", target_cluster_bootstrap_servers=None)
    assert error(tmp_path, beat) == (
        "0.json: connector my-heartbeat: no target.cluster.bootstrap.servers: heartbeats are written there "
        "(MirrorMaker 2's worker knows it; newer versions need it, too)"
    )
    # It is the same cluster as that of the source connector.
    assert read(tmp_path, [connector("Source"), beat]).flows[0].heartbeats.every == 1.0


@pytest.mark.parametrize(
    "name",
    [
        "ch.mawileo.kafka.mm2.PrefixlessReplicationPolicy",
        "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
        "com.instaclustr.kafka.connect.mirror.SimpleReplicationPolicy",
        "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
    ],
)
def test_well_known_java_classes_are_built_in(tmp_path: Path, name: str) -> None:
    deployment = read(tmp_path, connector("Source", replication_policy_class=name))
    assert deployment.flows[0].policy == IdentityReplicationPolicy("A")
    (note,) = deployment.notes
    assert note.text.startswith(
        f"connector my-source: replication.policy.class: IdentityReplicationPolicy stands for '{name}': it names "
        "mirrors the same way"
    )
    assert note.text.endswith("a prefix") == name.startswith("com.")


def test_for_an_unknown_java_class_the_built_in_ones_are_offered(tmp_path: Path) -> None:
    assert error(tmp_path, connector("Source", replication_policy_class="com.example.MyPolicy")).endswith(
        "replication.policy.class: 'com.example.MyPolicy' is the name of a Java class, which cannot be loaded here: "
        "write IdentityReplicationPolicy if mirrors have the names of their topics, DefaultReplicationPolicy if the "
        "source's alias is in front, or the path of a Python class that does the same, like mypackage.mymodule.MyClass"
    )
    with pytest.raises(ConfigError, match="write DefaultTopicFilter or the path of a Python class"):
        read(tmp_path, connector("Source", topic_filter_class="com.example.MyFilter"))
