"""Flows are values: they are pickled and sent to Spark executors."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from heliograph.model.flow import Cluster, Flow
from heliograph.model.names import NameFilter
from heliograph.model.policy import IdentityReplicationPolicy

A = Cluster("A", (("a", 9092),))
B = Cluster("B", (("b", 9092), ("::1", 9093)))


def test_a_flow_is_called_after_its_clusters() -> None:
    assert Flow(A, B).name == "A->B"


def test_a_flow_names_mirrors_by_its_policy() -> None:
    assert Flow(A, B).mirror_name("orders") == "A.orders"
    assert Flow(A, B, policy=IdentityReplicationPolicy("A")).mirror_name("orders") == "orders"


def test_a_flow_selects_topics_by_filter_and_policy() -> None:
    flow = Flow(A, B, topics=NameFilter(("orders.*",)))
    assert flow.selects("orders.v1")
    assert flow.selects("heartbeats")
    assert not flow.selects("customers")
    assert not flow.selects("B.orders")
    assert not Flow(A, B, topics=NameFilter(), heartbeats_replication=False).selects("heartbeats")


def test_a_flow_excludes_the_topic_settings_that_mm2_excludes() -> None:
    assert Flow(A, B).topic_sync.exclude.matches("min.insync.replicas")
    assert not Flow(A, B).topic_sync.exclude.matches("retention.ms")


def test_a_flow_can_be_pickled_hashed_and_not_changed() -> None:
    flow = Flow(A, B)
    assert pickle.loads(pickle.dumps(flow)) == flow
    assert hash(flow) == hash(Flow(A, B))
    with pytest.raises(FrozenInstanceError):
        flow.tasks_max = 2  # type: ignore[misc]
