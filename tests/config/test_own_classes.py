"""Policies and filters of a user's own, named by their Python path."""

from __future__ import annotations

import pickle

import pytest

from heliograph.config import ConfigError
from heliograph.model.names import NameFilter

from .files import MINIMAL, deployment, flow, notes, warnings

HERE = "config.own_classes"


def test_an_own_policy_names_the_mirrors() -> None:
    read = flow(f"replication.policy.class = {HERE}.Shouting\n")
    assert read.mirror_name("orders") == "A_ORDERS"
    assert pickle.loads(pickle.dumps(read)).mirror_name("orders") == "A_ORDERS"


def test_a_policy_gets_the_options_that_its_constructor_takes() -> None:
    read = flow(f"A->B.replication.policy.class = {HERE}.WithSeparator\nreplication.policy.separator = -\n")
    assert read.mirror_name("orders") == "A-A-orders"


def test_own_filters_select_topics_groups_and_configs() -> None:
    read = flow(
        f"topic.filter.class = {HERE}.Short\nA->B.short.letters = 5\n"
        f"A->B.group.filter.class = {HERE}.Even\nconfig.property.filter.class = {HERE}.Even\n"
    )
    read = pickle.loads(pickle.dumps(read))
    assert [read.topics.matches(name) for name in ("short", "longer")] == [True, False]
    assert [read.groups.names.matches(name) for name in ("ab", "abc")] == [True, False]
    # The class says what is carried over, as MM2's does; the flow holds what is not.
    assert [read.topic_sync.exclude.matches(name) for name in ("ab", "abc")] == [False, True]


def test_a_setting_meant_for_a_filter_is_noted_not_warned_about() -> None:
    added = f"A->B.topic.filter.class = {HERE}.Short\nA->B.short.letters = 5\n"
    assert warnings(added) == []
    assert notes(added) == [
        "mm2.properties:6: A->B.short.letters is not a setting of Heliograph: only the flow's own classes get it"
    ]
    assert len(warnings(added + "A->B.topcs = x\n")) == 1
    assert len(warnings("A->B.short.letters = 5\n")) == 1


@pytest.mark.parametrize(
    ("setting", "simple"),
    [
        ("topic.filter.class", "DefaultTopicFilter"),
        ("group.filter.class", "DefaultGroupFilter"),
        ("config.property.filter.class", "DefaultConfigPropertyFilter"),
    ],
)
def test_mm2s_own_filters_are_the_built_in_ones(setting: str, simple: str) -> None:
    for package in ("", "org.apache.kafka.connect.mirror."):
        read = flow(f"{setting} = {package}{simple}\ntopics = a\ngroups = b\nconfig.properties.exclude = c\n")
        assert read == flow("topics = a\ngroups = b\nconfig.properties.exclude = c\n")
        assert isinstance(read.topics, NameFilter)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            f"replication.policy.class = {HERE}.HalfAPolicy",
            f"replication.policy.class: '{HERE}.HalfAPolicy' is not a replication policy: it has no topic_source(), ",
        ),
        (f"replication.policy.class = {HERE}.WantsMore", "cannot be constructed: missing a required argument: 'moon'"),
        (f"replication.policy.class = {HERE}.FailsToBeMade", "cannot be constructed: RuntimeError: no moon tonight"),
        (f"replication.policy.class = {HERE}.Nothing", f"the module {HERE} has no class Nothing"),
        (f"replication.policy.class = {HERE}.NOT_A_CLASS", f"the module {HERE} has no class NOT_A_CLASS"),
        (f"topic.filter.class = {HERE}.HalfAPolicy", "is not a filter: it has no matches()"),
        (f"A->B.group.filter.class = {HERE}.Locked", "cannot be sent to Spark's executors"),
        (
            "topic.filter.class = org.example.MyFilter",
            "is the name of a Java class, which cannot be loaded here: write",
        ),
        ("A->B.config.property.filter.class = io.example.MyFilter", "is the name of a Java class"),
        ("group.filter.class = DefaultTopicFilter", "is neither built in (DefaultGroupFilter) nor a Python class path"),
    ],
)
def test_an_unusable_class_is_named_with_its_line(line: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        deployment(MINIMAL + line + "\n")
    assert str(raised.value).startswith("mm2.properties:5: ")
    assert says in str(raised.value)
