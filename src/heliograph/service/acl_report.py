"""The ACLs of several flows by principal: as the settings say, with the names that exist now, and checked."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType

from heliograph.control.acl_check import Checked, check_grants, existing_names
from heliograph.control.principals import Principal, note_names, principals
from heliograph.control.required_acls import Existing, Names, names_of, needs
from heliograph.model.flow import Cluster, Flow
from heliograph.model.membership import MembershipSettings
from heliograph.wire.allowed_operations import asks_for_idempotent_write
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import Unreachable, WireError

MembersGroups = Mapping[str, MembershipSettings]  # by target
_NO_GROUPS: MembersGroups = MappingProxyType({})


def _group(flow: Flow, groups: MembersGroups) -> str:
    return groups[flow.target.alias].group if flow.target.alias in groups else ""


@dataclass(frozen=True, slots=True)
class RequiredAcls:
    """`wider` are patterns for which the ACLs allow more names than match."""

    principals: tuple[Principal, ...]
    wider: tuple[str, ...] = ()


def required(flows: Sequence[Flow], given: str | None = None, groups: MembersGroups = _NO_GROUPS) -> RequiredAcls:
    """Connects to no cluster. `given` is the name of all principals. `groups` are those of members that share flows."""
    named = [(flow, names_of(flow)) for flow in flows]
    found = principals([(flow, needs(flow, names, members_group=_group(flow, groups))) for flow, names in named], given)
    return RequiredAcls(tuple(found), tuple(dict.fromkeys(wide for _flow, names in named for wide in names.wider)))


async def resolved(flows: Sequence[Flow], given: str | None = None, groups: MembersGroups = _NO_GROUPS) -> RequiredAcls:
    """With the topics and groups that exist now instead of prefixes. Raises WireError."""
    looked = await asyncio.gather(*map(_look, flows))
    tables = [
        (flow, needs(flow, names_of(flow, existing), is_old, _group(flow, groups)))
        for flow, (existing, is_old) in zip(flows, looked, strict=True)
    ]
    return RequiredAcls(tuple(principals(tables, given)))


@dataclass(frozen=True, slots=True)
class CheckedPrincipal:
    principal: Principal
    checked: tuple[Checked, ...]

    @property
    def missing_needed(self) -> list[Checked]:
        return [checked for checked in self.checked if checked.allowed is False and not self.is_optional(checked)]

    def is_optional(self, checked: Checked) -> bool:
        return checked.grant in self.principal.optional()

    def lost_without(self, checked: Checked) -> list[str]:
        if self.is_optional(checked):
            return [need.feature.value for need in self.principal.needs if need.grant == checked.grant]
        return [feature.value for feature in self.principal.lost_without(checked.grant)]


async def check(
    flows: Sequence[Flow], given: str | None = None, groups: MembersGroups = _NO_GROUPS
) -> list[CheckedPrincipal]:
    """What brokers allow the clients of these flows. Raises WireError."""
    looked = await asyncio.gather(*map(_look, flows))
    named: list[tuple[Flow, Names, Existing, bool]] = [
        (flow, names_of(flow), existing, is_old) for flow, (existing, is_old) in zip(flows, looked, strict=True)
    ]
    tables = [(flow, needs(flow, names, is_old, _group(flow, groups))) for flow, names, _existing, is_old in named]
    found = principals(tables, given)
    for flow, names, existing, _is_old in named:
        note_names(found, flow, names, existing)

    async def ask(principal: Principal) -> CheckedPrincipal:
        async with _client(principal.cluster) as client:
            grants = [*principal.grants(), *principal.optional()]
            return CheckedPrincipal(principal, tuple(await check_grants(client, grants, principal.names)))

    return list(await asyncio.gather(*map(ask, found)))


async def _look(flow: Flow) -> tuple[Existing, bool]:
    """The names that exist, and whether the target's brokers ask for IdempotentWrite."""
    async with _client(flow.target) as target:
        if not flow.reads_source:
            return Existing((), (), ()), False
        async with _client(flow.source) as source:
            return await existing_names(source, target), await asks_for_idempotent_write(target)


@asynccontextmanager
async def _client(cluster: Cluster) -> AsyncIterator[ClusterClient]:
    client = ClusterClient(cluster)
    try:
        await client.connect()
        yield client
    except WireError as error:
        raise Unreachable(f"cluster {cluster.alias} cannot be reached: {error}") from error
    finally:
        client.close()
