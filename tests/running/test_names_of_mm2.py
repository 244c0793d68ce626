"""Names as MM2's own driver and policies make them of the same file: only its classes run, no broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from config.files import CLUSTERS, deployment
from heliograph.config.read.properties import parse
from heliograph.model.policy import is_cycle
from mm2 import JavaClient

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
NO_SEPARATOR = "replication.policy.separator =\n"
FILES = [
    "",
    "source.cluster.alias =\n",
    "source.cluster.alias =\n" + NO_SEPARATOR,
    "source.cluster.alias =\ntarget.cluster.alias =\n" + NO_SEPARATOR,
    "source.cluster.alias =\ntarget.cluster.alias =\n" + IDENTITY,
    "source.cluster.alias = B\n" + NO_SEPARATOR,
    "A.alias = x\nB.alias = y\n",
    "A.alias = x\nsource.cluster.alias = top\ntarget.cluster.alias = top\n",
    "A.alias = x\nA->B.source.cluster.alias = own\nB->A.target.cluster.alias = back\n",
    "A->B.target.cluster.alias =\nreplication.policy.separator = _\n" + IDENTITY,
    "A.alias = x\nreplication.policy.separator = _\nreplication.policy.internal.topic.separator.enabled = false\n",
    "A.source.cluster.alias = no\nalias = neither\n",
]
TOPICS = ("x", "orders", "A.orders", "B.orders", "B", "aBc", ".b", "heartbeats", "A.heartbeats", "my-heartbeats", "a_b")


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClient]:
    with JavaClient() as client:
        yield client


def _is_cycle(policy: Any, topic: str | None, target: str) -> bool:
    """As in MirrorSourceConnector."""
    source = None if topic is None else policy.topicSource(topic)
    if source is None or source == target:
        return source is not None
    upstream = policy.upstreamTopic(topic)
    return upstream is not None and upstream != topic and _is_cycle(policy, upstream, target)


@pytest.mark.parametrize("added", FILES)
def test_a_file_gives_flows_the_names_that_mm2s_connectors_use(java: JavaClient, added: str) -> None:
    text = CLUSTERS + "A->B.enabled = true\nB->A.enabled = true\n" + added
    settings = {entry.key: entry.reveal() for entry in parse(text.encode(), "mm2.properties")}
    for flow in deployment(text).flows:
        config = java.connector_config(settings, flow.source.alias, flow.target.alias)
        source, target = config["source.cluster.alias"], config["target.cluster.alias"]
        assert flow.aliases == (source, target)
        policy = java.policy(config)
        assert flow.offset_syncs_topic == policy.offsetSyncsTopic(target)
        assert flow.checkpoints_topic == policy.checkpointsTopic(source)
        for topic in TOPICS:
            assert flow.mirror_name(topic) == policy.formatRemoteTopic(source, topic)
            assert flow.policy.topic_source(topic) == policy.topicSource(topic)
            assert flow.policy.original_topic(topic) == policy.originalTopic(topic)
            assert flow.policy.is_heartbeats_topic(topic) == policy.isHeartbeatsTopic(topic)
            assert flow.policy.is_internal_topic(topic) == policy.isInternalTopic(topic)
            assert is_cycle(flow.policy, topic, target) == _is_cycle(policy, topic, target)
