"""Which setting is suggested for an unknown name: one that was misspelt, never another one with similar letters."""

from __future__ import annotations

import pytest

from heliograph.config.declare import catalogue
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.similar import incomplete, misspelt

KNOWN = (
    *("topics", "topics.exclude", "tasks.max", "fetch.max.bytes", "metadata.max.age.ms", "refresh.topics.enabled"),
    *("sync.group.offsets.enabled", "checkpoints.topic.replication.factor", "offset-syncs.topic.location"),
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("topcs", "topics"),
        ("tpoics", "topics"),
        ("Topics", "topics"),
        ("task.max", "tasks.max"),
        ("tasks_max", "tasks.max"),
        ("tasks.mx", "tasks.max"),
        ("tasks.min", None),
        ("metadata.max.age.millis", "metadata.max.age.ms"),
        ("tasks.maximum", "tasks.max"),
        ("max.tasks", "tasks.max"),
        ("sync.group.offests.enabled", "sync.group.offsets.enabled"),
        ("offset.sync.topic.location", "offset-syncs.topic.location"),
        ("checkpoint.topic.replciation.factor", "checkpoints.topic.replication.factor"),
        ("message.max.bytes", None),
        ("message.max.age.ms", None),
        ("auto.create.topics.enable", None),
        ("checkpoints.topic.retention.ms", None),
        ("offset-syncs.topic.retention.ms", None),
        ("max.bytes", None),
        ("ms", None),
        ("", None),
    ],
)
def test_words_are_compared_one_by_one(written: str, meant: str | None) -> None:
    assert misspelt(written, KNOWN) == meant


def test_a_word_may_be_missing_but_not_two() -> None:
    assert incomplete("sync.group.enabled", KNOWN) == "sync.group.offsets.enabled"
    assert incomplete("checkpoint.replication.factor", KNOWN) == "checkpoints.topic.replication.factor"
    assert incomplete("replication.factor", KNOWN) is None
    assert incomplete("max", KNOWN) is None


def _exchanged(name: str) -> str:
    """The name with two neighbouring letters of its longest word exchanged."""
    word = max(name.replace("-", ".").split("."), key=len)
    at = next(at for at in range(len(word) // 2, len(word)) if word[at - 1] != word[at])
    return name.replace(word, word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :])


@pytest.mark.parametrize("scope", Scope)
def test_every_setting_is_found_by_a_typing_error_in_its_longest_word(scope: Scope) -> None:
    names = [
        name
        for setting in catalogue.settings()
        for location in setting.where.read
        if location.scope is scope and setting.supported and not setting.name.endswith(".*")
        for name in (location.prefix + setting.name,)
    ]
    assert len(names) > 20
    assert {name: catalogue.nearest(scope, _exchanged(name)) for name in names} == {name: name for name in names}


def test_no_known_name_is_one_that_is_no_setting() -> None:
    names = {name for setting in catalogue.settings() for name in setting.names}
    assert not [name for name in names if catalogue.not_a_setting(name)]
    assert not [name for name in names if catalogue.mistake(name)]
