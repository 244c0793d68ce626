"""Hashes by which members see whether they run the same file."""

from dataclasses import replace

from heliograph.model.fingerprint import differences, fingerprint
from heliograph.model.flow import Cluster, Flow, Groups, Reading
from heliograph.model.names import NameFilter
from heliograph.model.policy import IdentityReplicationPolicy
from heliograph.model.secret import Secret
from heliograph.model.security import PEM, KeyStore, Security, Tls

FLOW = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)))
OTHER = Flow(Cluster("C", (("c", 9092),)), Cluster("B", (("b", 9092),)))


def _differences(flow: Flow) -> list[str]:
    return differences(fingerprint([FLOW]), fingerprint([flow]))


def test_each_setting_of_a_flow_counts_and_is_named() -> None:
    assert _differences(FLOW) == []
    assert _differences(replace(FLOW, topics=NameFilter(("x",)))) == ["topics"]
    assert _differences(replace(FLOW, tasks_max=7, groups=Groups(sync_every=1.0))) == ["groups", "tasks_max"]
    assert _differences(replace(FLOW, policy=IdentityReplicationPolicy())) == ["policy"]
    assert _differences(OTHER) == ["flows"]


def test_what_differs_between_machines_does_not_count() -> None:
    tls = Tls(key=KeyStore(PEM, "/home/one/key.pem", Secret("hidden")))
    cluster = Cluster("B", (("10.0.0.1", 9093),), client_id="here", security=Security(tls=tls))
    assert _differences(replace(FLOW, target=cluster, writer=cluster, reading=Reading(rack="r1"))) == []


def test_the_order_of_flows_does_not_count() -> None:
    assert fingerprint([FLOW, OTHER]) == fingerprint([OTHER, FLOW])
