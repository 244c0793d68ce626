"""Who needs which ACLs on which cluster: the needs of several flows, by the principals that their clients log in as."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.control.required_acls import OPTIONAL, Client, Existing, Feature, Names, Need, grants, lost_without
from heliograph.model.acl import GROUP, TOPIC, Grant, Resource
from heliograph.model.flow import Cluster, Flow
from heliograph.model.security import UNSECURED, KerberosLogin, PasswordLogin, Security


@dataclass(slots=True)
class Principal:
    """A principal on one cluster. `is_known` is False if `name` stands for one that only the brokers know."""

    name: str
    cluster: Cluster
    is_known: bool
    flows: dict[str, None] = field(default_factory=dict)
    needs: list[Need] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=lambda: {TOPIC: set(), GROUP: set()})

    def grants(self) -> list[Grant]:
        return grants(self.needs)

    def optional(self) -> list[Grant]:
        needed = self.grants()
        wanted = {need.grant for need in self.needs if need.feature in OPTIONAL}
        return sorted(grant for grant in wanted if not any(other.allows(grant) for other in needed))

    def lost_without(self, grant: Grant) -> list[Feature]:
        lost = lost_without(self.needs, grant)
        return [feature for feature in Feature if feature in lost]

    def by_resource(self) -> dict[Resource, list[str]]:
        """The operations on each resource."""
        operations: dict[Resource, list[str]] = {}
        for grant in self.grants():
            operations.setdefault(grant.resource, []).append(grant.operation)
        return operations


def principals(flows: Sequence[tuple[Flow, Collection[Need]]], given: str | None = None) -> list[Principal]:
    """`given` is the name of all of them."""
    found: dict[tuple[str, str], Principal] = {}
    for flow, table in flows:
        for client in Client:
            needed = [need for need in table if need.client is client]
            if not needed:
                continue
            cluster = client.cluster(flow)
            name = given or _known_name(cluster.security)
            key = cluster.alias, name or _placeholder(flow, client)
            principal = found.setdefault(key, Principal(key[1], cluster, bool(name)))
            principal.flows[flow.name] = None
            principal.needs += needed
    return sorted(found.values(), key=lambda principal: principal.cluster.alias)


def _known_name(security: Security) -> str:
    """As brokers name who logs in so, by default; empty if that depends on a certificate, a token or their settings."""
    login = security.sasl.login if security.sasl is not None else None
    if isinstance(login, PasswordLogin) and not login.is_token:
        return f"User:{login.username}"
    if isinstance(login, KerberosLogin) and login.principal:
        return f"User:{login.principal.partition('@')[0].partition('/')[0]}"
    return "User:ANONYMOUS" if security == UNSECURED else ""


def _placeholder(flow: Flow, client: Client) -> str:
    driver = Client.SOURCE_DRIVER if client in (Client.SOURCE_DRIVER, Client.SOURCE_LEASES) else Client.TARGET_DRIVER
    cluster = client.cluster(flow)
    who = "MIRROR" if cluster.security == driver.cluster(flow).security else "LEASES"
    return f"User:{who}_ON_{cluster.alias}"


def note_names(found: Sequence[Principal], flow: Flow, names: Names, existing: Existing) -> None:
    """Adds the topics, mirrors and groups of a flow that exist, for a check."""
    topics = {topic for topic in existing.topics if flow.selects(topic)}
    mirrors = {flow.mirror_name(topic) for topic in topics}
    groups = {group for group in existing.groups if flow.groups.names.matches(group)} if names.groups else set()
    by_alias: Mapping[str, set[str]] = {flow.source.alias: topics, flow.target.alias: mirrors}
    for principal in found:
        if flow.name in principal.flows:
            principal.names[TOPIC] |= by_alias[principal.cluster.alias]
            principal.names[GROUP] |= groups
