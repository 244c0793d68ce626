"""MirrorMaker 2's replication policies: the names of mirrors, and which topics a flow copies.

Only names matter here, not whether a topic exists. As in MM2, any local name that has the separator in it counts as a
remote topic (`orders.v1` comes "from" `orders`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from heliograph.model.names import Matches, why_not

HEARTBEATS = "heartbeats"


@runtime_checkable
class ReplicationPolicy(Protocol):
    """The methods of MM2's ReplicationPolicy. None is Java's null: not a remote topic."""

    def remote_topic(self, source_alias: str, topic: str) -> str: ...

    def topic_source(self, topic: str) -> str | None: ...

    def upstream_topic(self, topic: str) -> str | None: ...

    def original_topic(self, topic: str) -> str: ...

    def heartbeats_topic(self) -> str: ...

    def offset_syncs_topic(self, alias: str) -> str: ...

    def checkpoints_topic(self, alias: str) -> str: ...

    def is_heartbeats_topic(self, topic: str) -> bool: ...

    def is_checkpoints_topic(self, topic: str) -> bool: ...

    def is_mm2_internal_topic(self, topic: str) -> bool: ...

    def is_internal_topic(self, topic: str) -> bool: ...


class _Naming:
    """What both policies share: the names of internal topics, and original names."""

    __slots__ = ()

    separator: str
    internal_separator: str | None

    def upstream_topic(self, topic: str) -> str | None:
        raise NotImplementedError

    def _internal(self) -> str:
        return self.separator if self.internal_separator is None else self.internal_separator

    def original_topic(self, topic: str) -> str:
        *_, last = hops(self, topic)
        return last

    def heartbeats_topic(self) -> str:
        return HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        return self._internal().join(("mm2-offset-syncs", alias, "internal"))

    def checkpoints_topic(self, alias: str) -> str:
        return self._internal().join((alias, "checkpoints", "internal"))

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.original_topic(topic) == HEARTBEATS

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._internal().join(("", "checkpoints", "internal")))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        return topic.endswith(self._internal() + "internal")

    def is_internal_topic(self, topic: str) -> bool:
        return (
            self.is_mm2_internal_topic(topic)
            or topic.startswith(("__", "."))
            or topic.endswith(("-internal", ".internal"))
        )


@dataclass(frozen=True, slots=True)
class DefaultReplicationPolicy(_Naming):
    """`orders` of cluster `A` is called `A.orders` on the target.

    `internal_separator` is used in the names of offset-syncs and checkpoints topics; None means `separator`, and `.` is
    for `replication.policy.internal.topic.separator.enabled = false`.
    """

    separator: str = "."
    internal_separator: str | None = None

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return source_alias + self.separator + topic

    def topic_source(self, topic: str) -> str | None:
        return _first_piece(topic, self.separator)

    def upstream_topic(self, topic: str) -> str | None:
        return _without_first_piece(topic, self.separator)


@dataclass(frozen=True, slots=True)
class IdentityReplicationPolicy(_Naming):
    """Topics keep their names; only those that end in `heartbeats` get a prefix, as each cluster has its own.

    MM2 tests only the ending, so `my-heartbeats` becomes `A.my-heartbeats` too; mirrors must have MM2's names.
    """

    source_alias: str | None = None
    separator: str = "."
    internal_separator: str | None = None

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return source_alias + self.separator + topic if topic.endswith(HEARTBEATS) else topic

    def topic_source(self, topic: str) -> str | None:
        return _first_piece(topic, self.separator) if topic.endswith(HEARTBEATS) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return _without_first_piece(topic, self.separator) if topic.endswith(HEARTBEATS) else topic


def _first_piece(topic: str, separator: str) -> str | None:
    """The piece before the first separator if the name has two pieces or more, counted as Java's `split` does: empty
    pieces at the end are dropped, those at the front stay, and an empty separator cuts between all characters."""
    pieces = topic.split(separator) if separator else list(topic)
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces[0] if len(pieces) > 1 else None


def _without_first_piece(topic: str, separator: str) -> str | None:
    source = _first_piece(topic, separator)
    return None if source is None else topic[len(source) + len(separator) :]


class _KnowsUpstream(Protocol):
    def upstream_topic(self, topic: str) -> str | None: ...


def hops(policy: _KnowsUpstream, topic: str) -> Iterator[str]:
    """The name, then the name one hop upstream, and so on. Ends where the policy has no further name, or repeats one:
    Identity always returns the same name, and a policy of the user's own may have a cycle."""
    seen: set[str] = set()
    name: str | None = topic
    while name is not None and name not in seen:
        yield name
        seen.add(name)
        name = policy.upstream_topic(name)


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether the topic came from the target at some hop, so that copying it there would make a cycle."""
    for name in hops(policy, topic):
        source = policy.topic_source(name)
        if source is None:
            return False
        if source == target_alias:
            return True
    return False


def selected(policy: ReplicationPolicy, topics: Matches, heartbeats: bool, target_alias: str, topic: str) -> bool:
    """Whether a flow copies this source topic. Heartbeats need not match the filter, but must not be internal or make a
    cycle."""
    wanted = topics.matches(topic) or (heartbeats and policy.is_heartbeats_topic(topic))
    return wanted and not policy.is_internal_topic(topic) and not is_cycle(policy, topic, target_alias)


def why_left_out(policy: ReplicationPolicy, topics: Matches, target_alias: str, topic: str) -> tuple[str, str]:
    """For a topic that is not selected: why, and what would change it."""
    if policy.is_internal_topic(topic):
        return "internal topics are never copied", "nothing: its name marks it as internal"
    if is_cycle(policy, topic, target_alias):
        target = target_alias or "the target"
        return f"it came from {target}", f"nothing: its original is on {target}"
    return why_not(topics, topic, "topics")


def checkpoint_topic(policy: ReplicationPolicy, source_alias: str, target_alias: str, topic: str) -> str:
    """The name in a checkpoint of a topic that a group consumes on the source: the original name if it came from the
    target, else that of its mirror."""
    if policy.topic_source(topic) == target_alias:
        return policy.original_topic(topic)
    return policy.remote_topic(source_alias, topic)
