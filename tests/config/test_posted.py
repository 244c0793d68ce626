"""Connectors that are given to a running process: their flow, their secrets, and what is wrong with them."""

import pytest

from heliograph.config import ConfigError
from heliograph.config.resolve.posted import connector, flow_of, shown, with_secrets
from heliograph.config.show.plugin_definitions import definitions, problems
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, ConnectOffsets, Flow

SOURCE_CONFIG = {
    "connector.class": "MirrorSourceConnector",
    "name": "s",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
    "topics": "orders",
}


def _flow(*configs: dict[str, str], worker: dict[str, str] | None = None) -> Flow:
    made = flow_of(
        [connector(config["name"], config) for config in configs], worker or {}, ConnectOffsets("o", "s", "g")
    )
    assert made.flow is not None
    return made.flow


def test_each_connector_is_a_part_of_the_flow() -> None:
    others = [
        SOURCE_CONFIG | {"connector.class": f"Mirror{kind}Connector", "name": kind}
        for kind in ("Checkpoint", "Heartbeat")
    ]
    assert _flow(SOURCE_CONFIG).parts == {SOURCE}
    assert _flow(others[0]).parts == {CHECKPOINT}
    assert _flow(others[1], SOURCE_CONFIG).parts == {SOURCE, HEARTBEAT}
    whole = _flow(*others, SOURCE_CONFIG)
    assert whole.name == "A->B"
    assert whole.parts == {SOURCE, CHECKPOINT, HEARTBEAT}
    assert whole.connect_offsets == ConnectOffsets("o", "s", "g")


def test_a_workers_interval_for_offsets_applies_to_all_flows() -> None:
    assert _flow(SOURCE_CONFIG).flush_offsets_every == 60.0
    assert _flow(SOURCE_CONFIG, worker={"offset.flush.interval.ms": "10000"}).flush_offsets_every == 10.0


def test_a_workers_producer_settings_apply_to_all_flows() -> None:
    assert _flow(SOURCE_CONFIG, worker={"producer.max.request.size": "1234567"}).writing.max_request_size == 1234567


def test_a_disabled_connector_makes_no_flow() -> None:
    made = flow_of([connector("s", SOURCE_CONFIG | {"enabled": "false"})], {}, None)
    assert made.flow is None


def test_topics_can_be_paused() -> None:
    assert _flow(SOURCE_CONFIG | {"heliograph.topics.paused": "a, b,"}).paused_topics == {"a", "b"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"connector.class": "FileStreamSource"}, "connector s: 'FileStreamSource' is not one of MirrorMaker 2's"),
        ({"source.cluster.alias": "A B"}, "connector s: source.cluster.alias: 'A B' cannot be part of topic names"),
        ({"tasks.max": "many"}, "connector s: tasks.max: 'many' is not a whole number"),
    ],
)
def test_errors_of_posted_connectors_name_no_file(change: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        flow_of([connector("s", SOURCE_CONFIG | change)], {}, None)
    assert str(error.value).startswith(says)


def test_secrets_are_hidden_and_come_back_as_they_were() -> None:
    config = {"target.cluster.sasl.jaas.config": "secret", "ssl.key.password": "${file:/f:p}", "topics": "t"}
    hidden = {**config, "target.cluster.sasl.jaas.config": "[hidden]"}
    assert shown(config) == hidden
    assert with_secrets(hidden, config) == config
    with pytest.raises(ConfigError):
        with_secrets(hidden, {})


def test_plugins_declare_the_settings_of_their_connector() -> None:
    names = {part: {definition.name for definition in definitions(part)} for part in (SOURCE, CHECKPOINT, HEARTBEAT)}
    assert "emit.checkpoints.enabled" in names[CHECKPOINT] - names[SOURCE] - names[HEARTBEAT]
    assert "emit.heartbeats.enabled" in names[HEARTBEAT] - names[SOURCE] - names[CHECKPOINT]
    assert "source.cluster.bootstrap.servers" not in names[HEARTBEAT]
    assert problems(SOURCE, SOURCE_CONFIG) == {}
    assert problems(SOURCE, SOURCE_CONFIG | {"tasks.max": "0", "topics": "("}).keys() == {"tasks.max", "topics"}
    assert problems(HEARTBEAT, {}).keys() >= {"name", "connector.class", "source.cluster.alias"}
