"""Aliases that a file sets: what MM2's connectors call source and target, where `clusters` says something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from heliograph.config import Deployment, load
from heliograph.config.read.formats import read_all
from heliograph.config.resolve.deployment import assemble
from heliograph.config.resolve.posted import connector, flow_of
from heliograph.config.show.explain import Explanation, explain
from heliograph.config.show.plugin_definitions import definitions
from heliograph.config.show.projection import connectors
from heliograph.model.flow import HEARTBEAT, SOURCE, Flow
from heliograph.model.policy import IdentityReplicationPolicy

from .files import MINIMAL, deployment, flow, notes, warnings

EMPTY = "source.cluster.alias =\nreplication.policy.separator =\n"
CONFIG = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}


def test_an_empty_alias_and_an_empty_separator_keep_the_names_of_topics() -> None:
    read = flow(EMPTY)
    assert read.name == "A->B"
    assert read.aliases == ("", "B")
    assert read.mirror_name("orders") == "orders"
    assert read.offset_syncs_topic == "mm2-offset-syncsBinternal"
    assert read.checkpoints_topic == "checkpointsinternal"
    assert read.name_in_checkpoints("orders") == "orders"
    assert not any("alias" in text for text in notes(EMPTY))


def test_without_a_separator_of_its_own_an_empty_alias_leaves_a_dot_in_front() -> None:
    assert flow("source.cluster.alias =\n").mirror_name("orders") == ".orders"


@pytest.mark.parametrize(
    ("added", "aliases"),
    [
        ("", ("A", "B")),
        ("source.cluster.alias = x", ("x", "B")),
        ("target.cluster.alias = y", ("A", "y")),
        ("A.alias = x\nB.alias = y", ("x", "y")),
        ("source.cluster.alias = top\nA.alias = x", ("x", "B")),
        ("A.alias = x\nA->B.source.cluster.alias = flow", ("flow", "B")),
        ("target.cluster.alias = top\nB.alias = y\nA->B.target.cluster.alias =", ("A", "")),
        ("B->A.source.cluster.alias = other flow's", ("A", "B")),
    ],
)
def test_an_alias_of_the_flow_wins_over_that_of_the_cluster_and_that_over_the_top_level(
    added: str, aliases: tuple[str, str]
) -> None:
    assert flow(added.replace(" flow's", "")).aliases == aliases


def test_an_alias_at_top_level_is_that_of_every_flow() -> None:
    read = deployment(MINIMAL + "B->A.enabled = true\nsource.cluster.alias = x\n")
    assert [(flow.name, flow.aliases) for flow in read.flows] == [("A->B", ("x", "B")), ("B->A", ("x", "A"))]


def test_a_cluster_that_is_called_source_does_not_hide_the_alias_of_all_sources() -> None:
    text = MINIMAL.replace("A", "source").replace("B", "target") + "source.cluster.alias = x\nsource.alias = y\n"
    assert deployment(text).flows[0].aliases == ("y", "target")
    assert deployment(text.replace("source.alias = y\n", "")).flows[0].aliases == ("x", "target")


def test_a_policy_gets_the_alias_that_the_file_sets() -> None:
    read = flow("replication.policy.class = IdentityReplicationPolicy\nA.alias = x\n")
    assert read.policy == IdentityReplicationPolicy("x")
    assert read.mirror_name("heartbeats") == "x.heartbeats"


def test_topics_that_came_from_the_target_are_recognized_by_the_alias_that_the_file_sets() -> None:
    read = flow("target.cluster.alias = y\n")
    assert read.selects("B.orders")
    assert not read.selects("y.orders")


def test_the_same_alias_for_both_clusters_leaves_nothing_to_copy_with_the_identity_policy() -> None:
    same = "source.cluster.alias =\ntarget.cluster.alias =\nreplication.policy.class = IdentityReplicationPolicy\n"
    assert not flow(same).selects("orders")
    assert warnings(same) == [
        "mm2.properties:5: A->B copies nothing: source and target have the same alias '', so the replication policy "
        "takes every topic for one that came from the target: set source.cluster.alias to another one"
    ]


def test_with_an_empty_separator_a_target_of_one_letter_excludes_topics_with_that_letter() -> None:
    read = flow(EMPTY)
    assert read.selects("orders")
    assert not read.selects("oBders")
    assert "mm2.properties:6: A->B does not copy topics with a 'B' in their name" in warnings(EMPTY)[0]
    assert warnings(EMPTY + "target.cluster.alias = west\n") == []


def test_heartbeats_are_not_copied_into_the_topic_that_a_flow_writes_its_own_to() -> None:
    read = flow(EMPTY)
    assert not read.selects("heartbeats")
    assert read.why_left_out("heartbeats")[0] == "its mirror is the topic that heartbeats are written to"
    assert "A->B does not copy the topic 'heartbeats'" in notes(EMPTY)[0]
    assert flow(EMPTY + "emit.heartbeats.enabled = false\n").selects("heartbeats")


def test_flows_that_do_not_recognize_each_others_mirrors_are_warned_about() -> None:
    both = "B->A.enabled = true\n"
    assert warnings(both) == warnings(both + "A.alias = x\nB.alias = y\n") == []
    assert warnings(both + "source.cluster.alias = x\n") == [
        "mm2.properties:6: A->B and B->A copy each other's mirrors, to ever longer names: B->A does not recognize "
        "'x.x' as a topic that came from 'A'",
        "mm2.properties:6: B->A and A->B copy each other's mirrors, to ever longer names: A->B does not recognize "
        "'x.x' as a topic that came from 'B'",
    ]
    assert warnings(both + "source.cluster.alias = x\ntopics = orders.*\n") == []
    assert warnings(both + "replication.policy.class = IdentityReplicationPolicy\n") == []


def test_what_cannot_be_part_of_a_topic_name_is_refused() -> None:
    with pytest.raises(Exception, match=r"mm2\.properties:5: A\.alias: 'a/b' cannot be part of topic names"):
        flow("A.alias = a/b\n")


def _explained(tmp_path: Path, added: str, key: str) -> Explanation:
    path = tmp_path / "mm2.properties"
    path.write_text(MINIMAL + added)
    document = read_all([path])
    return explain(document, assemble(document), key)


def test_the_origin_of_an_alias_is_explained(tmp_path: Path) -> None:
    explanation = _explained(tmp_path, "source.cluster.alias =\nA.alias = x\n", "source.cluster.alias")
    assert (explanation.key, explanation.acted) == ("source.cluster.alias", "")
    assert explanation.places == ("A->B.source.cluster.alias", "A.alias", "source.cluster.alias")
    origin = explanation.origins[0]
    assert origin.value is not None
    assert (origin.value.value, origin.value.written) == ("x", "A.alias")
    assert [(other.value, other.written) for other in origin.overridden] == [("", "source.cluster.alias")]
    (target, _back) = _explained(tmp_path, "", "target.cluster.alias").origins
    assert target.value is not None
    assert (target.value.value, target.value.written) == ("B", "clusters")


def test_connectors_of_a_file_have_the_aliases_and_become_the_same_flow_again(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(MINIMAL + EMPTY)
    document = read_all([path])
    read = assemble(document)
    projected = [each for each in connectors(document, read.flows) if each.part == SOURCE]
    config = projected[0].whole_config()
    assert (config["source.cluster.alias"], config["target.cluster.alias"]) == ("", "B")
    posted = connector("s", config)
    assert (posted.source, posted.target) == ("A", "B")


def _of_json(tmp_path: Path, **changes: str | None) -> Deployment:
    settings = CONFIG | {name.replace("_", "."): value for name, value in changes.items()}
    path = tmp_path / "connector.json"
    path.write_text(json.dumps({name: value for name, value in settings.items() if value is not None}))
    return load(path)


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        ("", "B", "source->B"),
        ("A", "", "A->target"),
        ("", "", "source->target"),
        ("A", None, "A->target"),
        ("A", "A", "A-source->A"),
        ("target", None, "target-source->target"),
    ],
)
def test_a_connector_may_have_any_aliases_that_mm2_takes(
    tmp_path: Path, source: str, target: str | None, name: str
) -> None:
    (read,) = _of_json(tmp_path, source_cluster_alias=source, target_cluster_alias=target).flows
    assert read.name == name
    assert read.aliases == (source, "target" if target is None else target)
    assert read.source.bootstrap_servers == (("a", 9092),)
    assert read.mirror_name("x") == f"{source}.x"


def test_a_connector_can_name_its_clusters(tmp_path: Path) -> None:
    (read,) = _of_json(tmp_path, source_cluster_alias="", heliograph_source_name="east").flows
    assert (read.name, read.aliases) == ("east->B", ("", "B"))
    assert notes("A->B.heliograph.source.name = x\n") == [
        "mm2.properties:5: A->B.heliograph.source.name is ignored: only connectors have it: here the name is in "
        "`clusters`"
    ]


def test_a_posted_connector_may_have_an_empty_alias() -> None:
    made = flow_of(
        [connector("s", CONFIG | {"source.cluster.alias": "", "replication.policy.separator": ""})], {}, None
    )
    assert isinstance(made.flow, Flow)
    assert made.flow.mirror_name("x") == "x"


def test_plugins_declare_the_aliases_as_mm2_does() -> None:
    declared = {definition.name: definition for definition in definitions(HEARTBEAT)}
    assert (declared["source.cluster.alias"].required, declared["source.cluster.alias"].default) == (True, None)
    assert (declared["target.cluster.alias"].required, declared["target.cluster.alias"].default) == (False, "target")


def _strimzi(tmp_path: Path, connector_config: dict[str, str], cluster_config: dict[str, str]) -> Deployment:
    clusters = [
        {"alias": "A", "bootstrapServers": "a:9092", "config": cluster_config},
        {"alias": "B", "bootstrapServers": "b:9092"},
    ]
    mirror = {
        "sourceCluster": "A",
        "targetCluster": "B",
        "sourceConnector": {"config": connector_config},
        "checkpointConnector": {},
    }
    resource = {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "m"},
        "spec": {"connectCluster": "B", "clusters": clusters, "mirrors": [mirror]},
    }
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump(resource))
    return load(path)


def test_strimzis_connectors_may_set_aliases_as_well(tmp_path: Path) -> None:
    assert _strimzi(tmp_path, {"source.cluster.alias": "x"}, {"alias": "y"}).flows[0].aliases == ("x", "B")
    assert _strimzi(tmp_path, {}, {"alias": "y"}).flows[0].aliases == ("y", "B")


def test_of_connectors_with_different_aliases_the_source_connector_decides(tmp_path: Path) -> None:
    read = _strimzi(tmp_path, {"source.cluster.alias": "x"}, {})
    assert [warning.text for warning in read.warnings] == [
        "spec.clusters[0].alias has no effect: the flow uses 'x', that of spec.mirrors[0].sourceConnector"
    ]
