"""Compares the ACLs that principals need with what brokers allow them, as the brokers say themselves."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from heliograph.control.required_acls import Existing
from heliograph.model.acl import (
    CLUSTER,
    DESCRIBE,
    GROUP,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    Grant,
    Resource,
)
from heliograph.wire.allowed_operations import (
    Operations,
    may_use_transactional_id,
    on_cluster_and_topics,
    on_groups,
)
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import list_groups

# A name that no topic or group has, to ask what is allowed on new ones.
_NEW = "heliograph-acl-check"
_NAMED = 3  # refused names in a text


@dataclass(frozen=True, slots=True)
class Checked:
    """`allowed` is None if the broker does not say. `refused` are names for which it is refused; those that do not
    exist yet are left out."""

    grant: Grant
    allowed: bool | None
    refused: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        if self.allowed is None:
            return "not known: the broker does not say"
        if self.allowed:
            return "there"
        if self.grant.resource.is_single or not self.refused:
            return "missing"
        more = f" and {len(self.refused) - _NAMED} more" if len(self.refused) > _NAMED else ""
        return f"missing for {', '.join(self.refused[:_NAMED])}{more}"


async def existing_names(source: ClusterClient, target: ClusterClient) -> Existing:
    """What both clients may describe."""
    topics, target_topics = (await source.metadata(None)).topics, (await target.metadata(None)).topics
    return Existing(topics.keys(), (await list_groups(source)).keys(), target_topics.keys())


async def check_grants(
    client: ClusterClient, grants: Collection[Grant], known_names: Mapping[str, Collection[str]]
) -> list[Checked]:
    """`known_names` are the topics and groups that exist, or will, by type of resource: a grant of a prefix is checked
    for them and for a new name."""
    probes = {grant: _probes(grant.resource, known_names.get(grant.resource.type, ())) for grant in grants}
    asked = {TOPIC: set[str](), GROUP: set[str](), TRANSACTIONAL_ID: set[str](), CLUSTER: set[str]()}
    for grant, names in probes.items():
        asked[grant.resource.type].update(names)
    on_cluster, on_topics = await on_cluster_and_topics(client, sorted(asked[TOPIC]))
    operations: dict[str, dict[str, Operations]] = {
        TOPIC: on_topics,
        GROUP: await on_groups(client, sorted(asked[GROUP])),
        CLUSTER: dict.fromkeys(asked[CLUSTER], on_cluster),
    }
    transactional_ids = {name: await may_use_transactional_id(client, name) for name in sorted(asked[TRANSACTIONAL_ID])}
    checked = []
    for grant, names in probes.items():
        if grant.resource.type == TRANSACTIONAL_ID:
            answers: dict[str, bool | None] = {name: transactional_ids[name] for name in names}
        else:
            known = operations[grant.resource.type]
            answers = {name: _is_allowed(grant, known.get(name)) for name in names}
        checked.append(_checked(grant, answers))
    return checked


def _is_allowed(grant: Grant, operations: Operations) -> bool | None:
    if operations is None:
        return None
    if not operations and not grant.allows(Grant(grant.resource, DESCRIBE)):
        return None  # nothing is returned without Describe, which this operation does not imply
    return any(Grant(grant.resource, operation).allows(grant) for operation in operations)


def _checked(grant: Grant, answers: dict[str, bool | None]) -> Checked:
    refused = tuple(name for name, allowed in answers.items() if allowed is False and not name.endswith(_NEW))
    if False in answers.values():
        return Checked(grant, False, refused)
    return Checked(grant, None if None in answers.values() else True)


def _probes(resource: Resource, names: Collection[str]) -> list[str]:
    """The names to ask about: an answer is about one name, not about a prefix."""
    if resource.is_single:
        return [resource.name]
    prefix = resource.name if resource.pattern == PREFIXED else ""
    if resource.type == TRANSACTIONAL_ID:
        return [f"{prefix}check"]
    return [*(name for name in sorted(names) if resource.covers(Resource(resource.type, name))), f"{prefix}{_NEW}"]
