"""Topics that would return to their cluster under their own name."""

from dataclasses import replace

from heliograph.model.flow import Cluster, Flow
from heliograph.model.names import NameFilter
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from heliograph.service.cycles import cycle_of


def _identity(source: str, target: str, topics: str = ".*") -> Flow:
    return Flow(
        Cluster(source, (("h", 1),)),
        Cluster(target, (("h", 1),)),
        policy=IdentityReplicationPolicy(source),
        topics=NameFilter((topics,)),
    )


def _default(source: str, target: str) -> Flow:
    return Flow(Cluster(source, (("h", 1),)), Cluster(target, (("h", 1),)))


def test_two_flows_in_opposite_directions_under_identity_names_are_a_cycle() -> None:
    flows = (_identity("A", "B"), _identity("B", "A"))
    assert cycle_of("orders", flows[0], flows) == ("A->B", "B->A")
    assert cycle_of("orders", flows[1], flows) == ("B->A", "A->B")


def test_two_flows_without_alias_and_separator_are_a_cycle() -> None:
    flows = tuple(
        replace(flow, connector_aliases=("", flow.target.alias), policy=DefaultReplicationPolicy(""))
        for flow in (_default("east", "west"), _default("west", "east"))
    )
    assert cycle_of("orders", flows[0], flows) == ("east->west", "west->east")


def test_three_flows_in_a_ring_are_a_cycle() -> None:
    flows = (_identity("A", "B"), _identity("B", "C"), _identity("C", "A"))
    assert cycle_of("orders", flows[0], flows) == ("A->B", "B->C", "C->A")


def test_flows_with_disjoint_topics_are_no_cycle() -> None:
    flows = (_identity("A", "B", "eu-.*"), _identity("B", "A", "us-.*"))
    assert cycle_of("eu-orders", flows[0], flows) == ()
    assert cycle_of("us-orders", flows[1], flows) == ()


def test_prefixes_of_the_default_policy_keep_topics_apart() -> None:
    flows = (_default("A", "B"), _default("B", "A"))
    assert cycle_of("orders", flows[0], flows) == ()


def test_a_chain_is_no_cycle() -> None:
    flows = (_identity("A", "B"), _identity("B", "C"))
    assert cycle_of("orders", flows[0], flows) == ()
