"""Whatever a JSON or YAML file holds, there is a deployment or an error of one line, never a stack trace."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.config import ConfigError
from heliograph.config.read.connect_json import connectors
from heliograph.config.read.joining import join
from heliograph.config.read.kubernetes import resources
from heliograph.config.read.tree import json_tree, yaml_trees
from heliograph.config.resolve.deployment import assemble
from heliograph.config.show.convert import FORMATS, convert

KEYS = st.sampled_from(
    [
        "connector.class",
        "source.cluster.alias",
        "target.cluster.alias",
        "source.cluster.bootstrap.servers",
        "target.cluster.bootstrap.servers",
        "enabled",
        "topics",
        "config.providers",
        "consumer.x",
        "config",
        "name",
        "info",
        "",
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=6),
    st.sampled_from(["A", "B", "a:1", "MirrorSource", "MirrorHeartbeat", "true", "${env:X}", "->"]),
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=20
)
FIELDS = st.sampled_from(
    [
        "alias",
        "bootstrapServers",
        "clusters",
        "target",
        "mirrors",
        "source",
        "sourceCluster",
        "targetCluster",
        "connectCluster",
        "sourceConnector",
        "heartbeatConnector",
        "config",
        "tls",
        "authentication",
        "type",
        "tasksMax",
        "topicsPattern",
        "pause",
        "state",
    ]
)
SPECS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=8), max_leaves=25
)
CLUSTERS = [{"alias": "A", "bootstrapServers": "a:1"}, {"alias": "B", "bootstrapServers": "b:1"}]


def one_line(error: ConfigError) -> None:
    """One for each error."""
    assert str(error).splitlines() == list(error.errors)
    assert all(error.errors)


@settings(deadline=None, max_examples=200)
@given(TREES, st.dictionaries(KEYS, LEAVES, max_size=4))
def test_any_json_gives_a_deployment_or_an_error(tree: Any, added: dict[str, Any]) -> None:
    good = {
        "connector.class": "MirrorSource",
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:1",
    }
    for content in (tree, [good | added, tree], good | added):
        try:
            read = join("f", [connectors("f", json_tree(json.dumps(content), "f"), "f")])
            deployment = assemble(read)
            for form in FORMATS:
                convert(read, deployment, form)
        except ConfigError as error:
            one_line(error)


@settings(deadline=None, max_examples=200)
@given(SPECS, SPECS, st.dictionaries(FIELDS, SPECS, max_size=3))
def test_any_yaml_gives_a_deployment_or_an_error(spec: Any, mirror: Any, added: dict[str, Any]) -> None:
    good = {"sourceCluster": "A", "targetCluster": "B", "sourceConnector": {}}
    for content in (
        spec,
        {"clusters": CLUSTERS, "mirrors": [mirror]},
        {"clusters": CLUSTERS, "mirrors": [good | added]},
    ):
        resource = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaMirrorMaker2", "spec": content}
        try:
            read = resources("f", yaml_trees(yaml.safe_dump(resource), "f"))
            assemble(join("f", [read]))
        except ConfigError as error:
            one_line(error)


@settings(deadline=None)
@given(
    st.text(max_size=40)
    | st.sampled_from(["a: &x [*x]", "{? [a] : b}", "<<: {a: 1}", "---\n---\n", '{"a": NaN}', "[" * 3000])
)
def test_any_text_gives_a_tree_or_an_error(text: str) -> None:
    for read in (json_tree, yaml_trees):
        try:
            read(text, "f")
        except ConfigError as error:
            one_line(error)
