"""Connectors as Kafka Connect takes them: JSON files, one by one or together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heliograph.config import ConfigError, Deployment, load, load_all
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Cluster, Flow
from heliograph.model.policy import IdentityReplicationPolicy

from .files import patterns

KAFKA = "org.apache.kafka.connect.mirror"
CLUSTERS = {
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}


def connector(kind: str, **config: object) -> dict[str, Any]:
    settings = {name.replace("__", "-").replace("_", "."): value for name, value in config.items()}
    return {
        "name": f"my-{kind.lower()}",
        "config": {"connector.class": f"{KAFKA}.Mirror{kind}Connector", **CLUSTERS, **settings},
    }


def three(**config: object) -> list[dict[str, Any]]:
    return [connector(kind, **config) for kind in ("Source", "Checkpoint", "Heartbeat")]


def read(tmp_path: Path, *files: object) -> Deployment:
    paths = []
    for number, content in enumerate(files):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(content, indent=2))
        paths.append(path)
    return load_all(paths)


def error(tmp_path: Path, *files: object) -> str:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, *files)
    assert "\n" not in str(raised.value)
    return str(raised.value).replace(f"{tmp_path}/", "")


def test_three_connectors_make_the_flow_of_the_least_mm2_properties(tmp_path: Path) -> None:
    deployment = read(tmp_path, three())
    assert deployment.flows == (Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),))),)
    assert deployment.heartbeat_only_flows == ()
    assert deployment.warnings == ()
    assert deployment.notes == ()


@pytest.mark.parametrize(
    ("cls", "parts"),
    [
        (f"{KAFKA}.MirrorSourceConnector", {SOURCE}),
        ("MirrorSourceConnector", {SOURCE}),
        ("MirrorSource", {SOURCE}),
        (f"{KAFKA}.MirrorCheckpoint", {CHECKPOINT}),
    ],
)
def test_one_connector_alone_is_a_flow_with_that_part(tmp_path: Path, cls: str, parts: set[str]) -> None:
    (flow,) = read(tmp_path, {"connector.class": cls, **CLUSTERS}).flows
    assert flow.parts == parts


def test_a_heartbeat_connector_alone_only_writes_heartbeats_and_needs_no_source(tmp_path: Path) -> None:
    config = connector("Heartbeat", emit_heartbeats_interval_seconds=5)
    del config["config"]["source.cluster.bootstrap.servers"]
    deployment = read(tmp_path, config)
    assert deployment.flows == ()
    (beat,) = deployment.heartbeat_only_flows
    assert (beat.parts, beat.heartbeats.every, beat.source.bootstrap_servers) == (frozenset({HEARTBEAT}), 5.0, ())


def test_each_setting_applies_to_the_connector_that_reads_it(tmp_path: Path) -> None:
    source = connector(
        "Source", tasks_max=4, topics="orders.*", groups="ignored", **{"producer_override_batch_size": 7}
    )
    checkpoint = connector("Checkpoint", tasks_max=1, topics="orders.*", groups="g", sync_group_offsets_enabled=True)
    heartbeat = connector("Heartbeat", emit_heartbeats_interval_seconds="3")
    deployment = read(tmp_path, [source, checkpoint, heartbeat])
    (flow,) = deployment.flows
    assert (flow.tasks_max, flow.writing.join_up_to, flow.heartbeats.every) == (4, 7, 3.0)
    assert patterns(flow.topics).include == ("orders.*",)
    assert (patterns(flow.groups.names).include, flow.groups.sync_every) == (("g",), 60.0)
    assert deployment.warnings == ()
    assert [note.text for note in deployment.notes] == [
        "connector my-source: groups has no effect: the flow uses that of connector my-checkpoint",
        "connector my-checkpoint: tasks.max has no effect: the flow uses that of connector my-source",
    ]


def test_client_settings_have_connects_precedence(tmp_path: Path) -> None:
    config = {
        "consumer.fetch.min.bytes": "1",
        "source.consumer.fetch.min.bytes": "2",
        "source.consumer.client.id": "me",
    }
    source = connector("Source")
    source["config"] |= config
    (flow,) = read(tmp_path, source).flows
    assert flow.reader is not None
    assert (flow.reading.fetch_min_bytes, flow.reader.client_id, flow.source.client_id) == (2, "me", "heliograph")


def test_the_alias_of_the_target_is_target_by_default(tmp_path: Path) -> None:
    source = connector("Source")
    del source["config"]["target.cluster.alias"]
    assert read(tmp_path, source).flows[0].name == "A->target"


def test_files_of_a_directory_are_one_deployment(tmp_path: Path) -> None:
    for number, connector in enumerate(three()):
        (tmp_path / f"{number}.json").write_text(json.dumps(connector))
    (tmp_path / "notes.txt").write_text("not ours")
    (flow,) = load(tmp_path).flows
    assert flow.parts == {SOURCE, CHECKPOINT, HEARTBEAT}
    assert load_all(sorted(tmp_path.glob("*.json"))).flows == (flow,)


def test_both_directions_and_a_third_cluster(tmp_path: Path) -> None:
    back = connector("Source")
    back["config"] |= {
        "source.cluster.alias": "C",
        "source.cluster.bootstrap.servers": "c:1",
        "replication.policy.class": "IdentityReplicationPolicy",
    }
    deployment = read(tmp_path, three(), back)
    assert [flow.name for flow in deployment.flows] == ["A->B", "C->B"]
    assert deployment.flows[1].policy == IdentityReplicationPolicy("C")
    assert deployment.heartbeat_only_flows == ()


def test_connects_response_about_its_connectors_can_be_read(tmp_path: Path) -> None:
    answer = {given["name"]: {"info": {**given, "tasks": [], "type": "source"}} for given in three()}
    assert read(tmp_path, answer).flows == read(tmp_path, three()).flows


def test_a_properties_file_of_a_single_connector_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "connect-mirror-source.properties"
    config = connector("Source", topics="orders")["config"]
    file.write_text("".join(f"{key} = {value}\n" for key, value in config.items()))
    assert load(file).flows == read(tmp_path, connector("Source", topics="orders")).flows


def test_disabled_connectors_do_not_run(tmp_path: Path) -> None:
    off = connector("Checkpoint", enabled="false")
    (flow,) = read(tmp_path, [connector("Source"), off]).flows
    assert flow.parts == {SOURCE}
    paused = {**connector("Checkpoint"), "initial_state": "PAUSED"}
    deployment = read(tmp_path, [connector("Source"), paused])
    assert deployment.running_flows == (flow,)
    assert [note.text for note in deployment.notes] == ["connector my-checkpoint is paused: it does not run"]
    assert "every connector has 'enabled' set to false" in error(tmp_path, connector("Source", enabled="false"))
    # MM2's heartbeat connector pays no heed to it.
    assert read(tmp_path, three(enabled="false")).heartbeat_only_flows[0].parts == {HEARTBEAT}


def test_references_use_the_usual_providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS", "orders")
    deployment = read(tmp_path, connector("Source", topics="${env:TOPICS}"))
    assert patterns(deployment.flows[0].topics).include == ("orders",)
    assert [note.text for note in deployment.notes] == [
        "connector my-source: topics: 'env' is taken to be Kafka's EnvVarConfigProvider: the worker that declares "
        "it is not in this file"
    ]


def test_settings_that_mm2s_driver_repeats_for_each_client_are_accepted(tmp_path: Path) -> None:
    config = connector("Source")
    config["config"] |= {f"source.{kind}.bootstrap.servers": "a:9092" for kind in ("consumer", "producer", "admin")}
    config["config"] |= {"target.cluster.offset.storage.replication.factor": "3"}
    deployment = read(tmp_path, config)
    assert deployment.warnings == ()
    assert [note.text for note in deployment.notes] == [
        "connector my-source: target.cluster.offset.storage.replication.factor is ignored: only `heliograph serve` "
        "stores its state in such topics, and it reads them from the worker's file"
    ]


def test_warnings_name_connector_line_and_key_as_written(tmp_path: Path) -> None:
    deployment = read(tmp_path, connector("Source", topcs="x", source_cluster_bootstrap_server="a", client_id="x"))
    warnings = [str(warning).replace(f"{tmp_path}/", "") for warning in deployment.warnings]
    assert warnings == [
        "0.json:9: connector my-source: unknown setting 'topcs': did you mean 'topics'?",
        "0.json:10: connector my-source: unknown setting 'source.cluster.bootstrap.server': "
        "did you mean 'source.cluster.bootstrap.servers'?",
        "0.json:11: connector my-source: 'client.id' has no effect: client.id is read from "
        "'source.consumer.client.id', 'consumer.client.id', 'producer.override.client.id', 'target.admin.client.id', "
        "'admin.client.id' or 'source.admin.client.id'",
    ]


def test_a_repeated_key_is_warned_about(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    text = json.dumps(connector("Source", topics="a"), indent=1)
    file.write_text(text.replace('"topics": "a"', '"topics": "a",\n"topics": "b"'))
    deployment = load(file)
    assert patterns(deployment.flows[0].topics).include == ("b",)
    assert "'topics' is set again" in str(deployment.warnings[0])


def test_other_connectors_are_ignored_with_a_warning(tmp_path: Path) -> None:
    other = {"name": "sink", "config": {"connector.class": "org.example.Sink"}}
    deployment = read(tmp_path, [*three(), other])
    assert [warning.text for warning in deployment.warnings] == [
        "connector sink: 'org.example.Sink' is not one of MirrorMaker 2's connectors: it is ignored"
    ]
    assert "there is none of MirrorMaker 2's connectors in it" in error(tmp_path, other)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            [connector("Source"), connector("Checkpoint", source_cluster_bootstrap_servers="x:1")],
            "0.json:18: connector my-checkpoint: source.cluster.bootstrap.servers: 'x:1' differs from 'a:9092' in "
            "connector my-source (0.json:8): it is the same cluster A",
        ),
        (
            [
                connector("Source", source_cluster_sasl_jaas_config="one"),
                connector("Checkpoint", source_cluster_sasl_jaas_config="two"),
            ],
            "source.cluster.sasl.jaas.config: '[hidden]' differs from '[hidden]' in connector my-source",
        ),
        (
            [connector("Source"), connector("Source")],
            "connector my-source: there is a MirrorSourceConnector of A->B already, connector my-source",
        ),
        (connector("Source", source_cluster_alias="A B"), "source.cluster.alias: 'A B' cannot be part of topic names"),
        (connector("Source", heliograph_source_name=""), "heliograph.source.name: '' lists no cluster"),
        (
            connector("Source", tasks_max="many"),
            "0.json:9: connector my-source: tasks.max: 'many' is not a whole number",
        ),
        (connector("Source", enabled="yes"), "0.json:9: connector my-source: enabled: 'yes' is neither true nor false"),
        (
            connector("Source", topics=["a"]),
            "connector my-source: topics: a setting is a text, not a list or an object",
        ),
        (connector("Source", source_cluster_bootstrap_servers=None), "my-source: no source.cluster.bootstrap.servers"),
        (connector("Source", source_cluster_alias=None), "0.json:4: connector my-source: no source.cluster.alias"),
        ({"a": 1}, "0.json:2: no connector.class: this is not a connector"),
        ([1], "a connector is an object with 'name' and 'config'"),
    ],
)
def test_an_error_names_connector_and_key(tmp_path: Path, content: object, says: str) -> None:
    assert says in error(tmp_path, content)


def test_invalid_json_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{\n "a": 1,\n}')
    with pytest.raises(ConfigError, match=r"x\.json:[23]: this is not JSON"):
        load(file)
    file.write_bytes(b"\xff\xff")
    with pytest.raises(ConfigError, match="this is not UTF-8 text"):
        load(file)


def test_an_mm2_properties_cannot_be_combined_with_other_files(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A, B\n")
    (tmp_path / "0.json").write_text(json.dumps(connector("Source")))
    with pytest.raises(ConfigError, match=r"an mm2\.properties cannot be combined with"):
        load_all([tmp_path / "0.json", file])


def test_all_errors_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(
            tmp_path,
            [connector("Source", topics=["a"], groups={}), connector("Checkpoint", source_cluster_alias=None)],
            {"a": 1},
        )
    assert [text.replace(f"{tmp_path}/", "") for text in raised.value.errors] == [
        "0.json:10: connector my-source: topics: a setting is a text, not a list or an object",
        "0.json:13: connector my-source: groups: a setting is a text, not a list or an object",
        "0.json:19: connector my-checkpoint: no source.cluster.alias",
        "1.json:2: no connector.class: this is not a connector",
    ]
    with pytest.raises(ConfigError) as raised:
        read(
            tmp_path,
            [
                connector("Source", source_cluster_bootstrap_servers=None),
                connector("Checkpoint", target_cluster_bootstrap_servers="c:9092", enabled="yes"),
            ],
        )
    assert [text.replace(f"{tmp_path}/", "") for text in raised.value.errors] == [
        "0.json:19: connector my-checkpoint: target.cluster.bootstrap.servers: 'c:9092' differs from 'b:9092' in "
        "connector my-source (0.json:9): it is the same cluster B",
        "0.json:20: connector my-checkpoint: enabled: 'yes' is neither true nor false",
    ]
