"""MirrorMaker 2's naming rules, by its own examples."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.model.names import NameFilter
from heliograph.model.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    checkpoint_topic,
    is_cycle,
    selected,
)

DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("source")
EVERYTHING = NameFilter((".*",))


def test_the_default_policy_puts_the_alias_in_front() -> None:
    assert DEFAULT.remote_topic("A", "orders") == "A.orders"
    assert DEFAULT.remote_topic("A", "A.orders") == "A.A.orders"
    assert DefaultReplicationPolicy("__").remote_topic("A", "orders") == "A__orders"


@pytest.mark.parametrize(
    ("topic", "source"),
    [
        ("a.b", "a"),
        ("a", None),
        ("a.", None),
        (".a", ""),
        ("a..b", "a"),
        ("a..", None),
        ("", None),
        (".", None),
        ("orders.v1", "orders"),
    ],
)
def test_the_source_of_a_topic_is_found_with_javas_way_of_splitting(topic: str, source: str | None) -> None:
    assert DEFAULT.topic_source(topic) == source


@pytest.mark.parametrize(
    ("topic", "upstream"), [("a.b", "b"), ("a", None), ("a.", None), (".a", "a"), ("a..b", ".b"), ("a.b.c", "b.c")]
)
def test_the_upstream_name_is_what_follows_source_and_separator(topic: str, upstream: str | None) -> None:
    assert DEFAULT.upstream_topic(topic) == upstream


def test_the_original_name_has_no_prefix_left() -> None:
    assert DEFAULT.original_topic("a.b.c") == "c"
    assert DEFAULT.original_topic("c") == "c"
    assert IDENTITY.original_topic("a.b.c") == "a.b.c"
    assert IDENTITY.original_topic("a.heartbeats") == "heartbeats"


def test_an_empty_separator_cuts_between_characters() -> None:
    policy = DefaultReplicationPolicy("")
    assert policy.topic_source("abc") == "a"
    assert policy.upstream_topic("abc") == "bc"
    assert policy.topic_source("a") is None
    assert policy.original_topic("abc") == "c"


def test_internal_topics_have_the_separator_in_their_names() -> None:
    assert DEFAULT.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert DEFAULT.checkpoints_topic("A") == "A.checkpoints.internal"
    assert DEFAULT.heartbeats_topic() == "heartbeats"
    custom = DefaultReplicationPolicy("__")
    assert custom.offset_syncs_topic("B") == "mm2-offset-syncs__B__internal"
    assert custom.checkpoints_topic("A") == "A__checkpoints__internal"
    assert custom.is_checkpoints_topic("A__checkpoints__internal")
    assert not custom.is_checkpoints_topic("A.checkpoints.internal")
    assert custom.is_mm2_internal_topic("x__internal")
    assert custom.remote_topic("A", custom.heartbeats_topic()) == "A__heartbeats"


def test_internal_topics_can_keep_the_dot() -> None:
    custom = DefaultReplicationPolicy("__", internal_separator=".")
    assert custom.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert custom.checkpoints_topic("A") == "A.checkpoints.internal"
    assert custom.remote_topic("A", "orders") == "A__orders"
    assert not custom.is_mm2_internal_topic("x__internal")


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        (".hidden", True),
        ("connect-internal", True),
        ("mm2-configs.A.internal", True),
        ("A.checkpoints.internal", True),
        ("internal", False),
        ("orders", False),
        ("_schemas", False),
    ],
)
def test_internal_topics_are_known_by_their_names(topic: str, internal: bool) -> None:
    assert DEFAULT.is_internal_topic(topic) is internal
    assert IDENTITY.is_internal_topic(topic) is internal
    assert DefaultReplicationPolicy("_").is_internal_topic(topic) is internal


def test_heartbeats_are_known_by_their_original_name() -> None:
    assert DEFAULT.is_heartbeats_topic("heartbeats")
    assert DEFAULT.is_heartbeats_topic("A.heartbeats")
    assert DEFAULT.is_heartbeats_topic("A.B.heartbeats")
    assert not DEFAULT.is_heartbeats_topic("my-heartbeats")
    assert IDENTITY.is_heartbeats_topic("A.heartbeats")
    assert not IDENTITY.is_heartbeats_topic("my-heartbeats")


def test_the_identity_policy_keeps_names_except_those_that_look_like_heartbeats() -> None:
    assert IDENTITY.remote_topic("A", "orders") == "orders"
    assert IDENTITY.remote_topic("A", "heartbeats") == "A.heartbeats"
    assert IDENTITY.remote_topic("A", "my-heartbeats") == "A.my-heartbeats"
    assert IDENTITY.topic_source("orders") == "source"
    assert IDENTITY.topic_source("A.heartbeats") == "A"
    assert IDENTITY.topic_source("heartbeats") is None
    assert IDENTITY.upstream_topic("orders") == "orders"
    assert IDENTITY.upstream_topic("A.heartbeats") == "heartbeats"
    assert IDENTITY.upstream_topic("heartbeats") is None
    assert IdentityReplicationPolicy(None).topic_source("orders") is None
    assert IDENTITY.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"


@pytest.mark.parametrize(
    "topic",
    [
        "target.topic1",
        "target.source.topic1",
        "source.target.topic1",
        "target.source.target.topic1",
        "source.target.source.topic1",
        "target.orders",
        "eu.target.orders",
    ],
)
def test_a_topic_that_came_from_the_target_at_any_hop_is_a_cycle(topic: str) -> None:
    assert is_cycle(DEFAULT, topic, "target")


@pytest.mark.parametrize("topic", ["topic1", "source.topic1"])
def test_a_topic_that_never_was_on_the_target_is_no_cycle(topic: str) -> None:
    assert not is_cycle(DEFAULT, topic, "target")


def test_identity_sees_cycles_of_heartbeats_only() -> None:
    assert not is_cycle(IDENTITY, "target.topic1", "target")
    assert is_cycle(IDENTITY, "target.heartbeats", "target")
    assert is_cycle(IDENTITY, "source.target.heartbeats", "target")


@dataclass(frozen=True)
class GoingInCircles(DefaultReplicationPolicy):
    """A policy of a user's own that never comes to an end."""

    def topic_source(self, topic: str) -> str | None:
        return "elsewhere"

    def upstream_topic(self, topic: str) -> str | None:
        return {"a": "b", "b": "c"}.get(topic, "a")


def test_a_policy_with_a_cycle_does_not_hang() -> None:
    policy = GoingInCircles()
    assert not is_cycle(policy, "a", "target")
    assert policy.original_topic("a") == "c"
    assert not policy.is_heartbeats_topic("a")


def test_very_long_chains_do_not_overflow() -> None:
    topic = "x." * 2000 + "orders"
    assert DEFAULT.original_topic(topic) == "orders"
    assert not is_cycle(DEFAULT, topic, "target")


@pytest.mark.parametrize(
    ("topic", "renamed"),
    [("topic3", "source1.topic3"), ("target2.topic3", "topic3"), ("source6.topic7", "source1.source6.topic7")],
)
def test_checkpoints_name_topics_as_the_target_calls_them(topic: str, renamed: str) -> None:
    assert checkpoint_topic(DEFAULT, "source1", "target2", topic) == renamed


def test_heartbeats_need_not_match_the_filter_but_must_pass_the_checks() -> None:
    nothing = NameFilter()
    assert selected(DEFAULT, nothing, True, "target", "heartbeats")
    assert selected(DEFAULT, nothing, True, "target", "source.heartbeats")
    assert not selected(DEFAULT, nothing, False, "target", "heartbeats")
    assert not selected(DEFAULT, nothing, True, "target", "orders")
    assert not selected(DEFAULT, nothing, True, "target", "target.heartbeats")


def test_internal_topics_and_cycles_are_never_selected() -> None:
    assert selected(DEFAULT, EVERYTHING, True, "target", "orders")
    assert not selected(DEFAULT, EVERYTHING, True, "target", "__consumer_offsets")
    assert not selected(DEFAULT, EVERYTHING, True, "target", "mm2-offset-syncs.target.internal")
    assert not selected(DEFAULT, EVERYTHING, True, "target", "target.orders")


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY, DefaultReplicationPolicy("_", ".")])
def test_policies_are_values(policy: ReplicationPolicy) -> None:
    assert isinstance(policy, ReplicationPolicy)
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert hash(policy) == hash(pickle.loads(pickle.dumps(policy)))


NAME = st.text(st.sampled_from("ab1._-"), min_size=1, max_size=12)
ALIAS = st.text(st.sampled_from("abAB12"), min_size=1, max_size=6)
SEPARATOR = st.sampled_from([".", "_", "-"])


@settings(deadline=None)
@given(alias=ALIAS, topic=NAME, separator=SEPARATOR)
def test_a_mirror_leads_back_to_its_source_topic(alias: str, topic: str, separator: str) -> None:
    policy = DefaultReplicationPolicy(separator)
    remote = policy.remote_topic(alias, topic)
    if topic.strip(separator):
        assert policy.topic_source(remote) == alias
        assert policy.upstream_topic(remote) == topic
    else:  # Java's split drops the empty pieces at the end, so nothing but separators is no name
        assert policy.topic_source(remote) is None


@settings(deadline=None)
@given(aliases=st.lists(ALIAS, max_size=5), separator=SEPARATOR)
def test_the_original_of_a_chain_of_mirrors_is_the_first_topic(aliases: list[str], separator: str) -> None:
    policy = DefaultReplicationPolicy(separator)
    topic = "orders"
    for alias in aliases:
        topic = policy.remote_topic(alias, topic)
    assert policy.original_topic(topic) == "orders"
    assert is_cycle(policy, topic, "target") is False
    assert all(is_cycle(policy, topic, alias) for alias in aliases)


@settings(deadline=None)
@given(topic=NAME)
def test_identity_changes_no_name_that_is_no_heartbeat(topic: str) -> None:
    assert IDENTITY.remote_topic("A", topic) == topic
    assert IDENTITY.upstream_topic(topic) == topic
    assert not is_cycle(IDENTITY, topic, "target")
