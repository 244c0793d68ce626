"""Where a setting may be written, and which location wins: MirrorMaker 2's order of precedence.

In the comments and on the reference page `A->B` is a flow, `A` its source, `B` its target, `C` any cluster.
"""

from dataclasses import dataclass
from enum import Enum
from functools import partial


class Scope(Enum):
    """What a key of the file applies to."""

    TOP = "top level"
    CLUSTER = "cluster"
    FLOW = "flow"


class Role(Enum):
    """Which cluster of a flow `A->B` a cluster's key belongs to."""

    SOURCE = "A"
    TARGET = "B"
    EITHER = "C"


@dataclass(frozen=True, slots=True)
class SettingLocation:
    """A scope, and what is between the alias and the name (`source.consumer.`)."""

    scope: Scope
    prefix: str = ""
    role: Role = Role.EITHER

    def owner(self, source: str, target: str) -> str:
        """Whom the key belongs to for one flow: '' at top level, else an alias or `source->target`."""
        match self.scope:
            case Scope.TOP:
                return ""
            case Scope.FLOW:
                return f"{source}->{target}"
            case Scope.CLUSTER:
                return target if self.role is Role.TARGET else source

    def key(self, name: str, source: str = "A", target: str = "B") -> str:
        """The whole key as it is written in a file."""
        owner = self.owner(source, target)
        return f"{owner}.{self.prefix}{name}" if owner else f"{self.prefix}{name}"

    def example(self, name: str) -> str:
        """The key with the aliases of the reference page."""
        either = (self.scope, self.role) == (Scope.CLUSTER, Role.EITHER)
        return self.key(name, "C", "C") if either else self.key(name)


top = partial(SettingLocation, Scope.TOP)
flow = partial(SettingLocation, Scope.FLOW)
cluster = partial(SettingLocation, Scope.CLUSTER)
source = partial(cluster, role=Role.SOURCE)
target = partial(cluster, role=Role.TARGET)


@dataclass(frozen=True, slots=True)
class LocationSet:
    """Locations with a common name. `read` is in order of precedence, highest first; `also` are locations that MM2
    knows but that configure clients which Heliograph does not have."""

    label: str
    read: tuple[SettingLocation, ...]
    also: tuple[SettingLocation, ...] = ()


# MM2's driver turns `A.consumer.x` into `source.consumer.x`, which wins over the `consumer.x` that `A->B.consumer.x`
# becomes.
SOURCE_CONSUMER = (flow("source.consumer."), source("consumer."), flow("consumer."))
TARGET_ADMIN = (flow("target.admin."), target("admin."), flow("admin."))
# Records are written by the Connect worker's producer. `A->B.producer.x` is only for the one that writes offset syncs.
DATA_PRODUCER = (flow("producer.override."), target("producer."))

SOURCE_ADMIN = (flow("source.admin."), source("admin."), flow("admin."))

# Each client has a name, timeouts and so on, and falls back to those of its cluster, then of all clusters. Records are
# read and written by clients of their own, the rest is done by the admin clients of source and target.
OF_READING = (*SOURCE_CONSUMER, source(), top())
OF_SOURCE = (*SOURCE_ADMIN, source(), top())
OF_TARGET = (*TARGET_ADMIN, target(), top())
OF_WRITING = (*DATA_PRODUCER, target(), top())
OF_CLUSTER = (cluster("admin."), cluster(), top())


def _joined(*sets: LocationSet) -> LocationSet:
    return LocationSet(
        ", ".join(joined.label for joined in sets),
        tuple(location for joined in sets for location in joined.read),
        tuple(location for joined in sets for location in joined.also),
    )


CONSUMER = LocationSet("consumer", SOURCE_CONSUMER, (flow("target.consumer."), flow("consumer.override.")))
PRODUCER = LocationSet(
    "producer", DATA_PRODUCER, (flow("producer."), flow("source.producer."), flow("target.producer."))
)
_ADMIN = LocationSet("admin", TARGET_ADMIN, (flow("source.admin."), flow("admin.override.")))
# TARGET_ADMIN has the third location of SOURCE_ADMIN as well.
_ONLY_SOURCE_ADMIN = SOURCE_ADMIN[:2]
WORKER = LocationSet("worker", (target(),))
WORKER_TOP_FIRST = LocationSet("worker, top level first", (top(), target()))

_CLIENTS = _joined(CONSUMER, PRODUCER, _ADMIN)
_ALL_CLIENTS = (*_CLIENTS.read, *_CLIENTS.also)
CLUSTERS_OF_FLOW = (flow("source.cluster."), flow("target.cluster."))

TOP = LocationSet("top level", (top(),))
FLOW = LocationSet("flow", (flow(), top()))
FLOW_ONLY = LocationSet("flow only", (flow(),))
CLUSTER = LocationSet("cluster", (cluster(), top()), (*_ALL_CLIENTS, *CLUSTERS_OF_FLOW))
PROVIDERS = LocationSet("providers", (top(),), (flow(), target(), *_ALL_CLIENTS))
_NOT_READ = tuple(location for location in _CLIENTS.also if location not in _ONLY_SOURCE_ADMIN)
CLIENT_CLUSTER = LocationSet(
    "any client or cluster",
    (*_CLIENTS.read, *_ONLY_SOURCE_ADMIN, *OF_CLUSTER),
    (*_NOT_READ, *CLUSTERS_OF_FLOW),
)
RECORDS_CLUSTER = LocationSet(
    "consumer, producer or cluster",
    (*SOURCE_CONSUMER, *DATA_PRODUCER, cluster(), top()),
    (*CONSUMER.also, *PRODUCER.also, *_ADMIN.read, *_ADMIN.also, *CLUSTERS_OF_FLOW),
)
SECURITY = LocationSet(
    "security",
    (*_CLIENTS.read, *_ONLY_SOURCE_ADMIN, *CLUSTERS_OF_FLOW, cluster(), top()),
    (*_NOT_READ, flow()),
)

# What MM2's driver gives its connectors unless the file sets it: `A.alias` becomes `source.cluster.alias`.
_ALIASES = {
    side: (flow(f"{side}.cluster."), at(), top(f"{side}.cluster."))
    for side, at in (("source", source), ("target", target))
}
ALIAS = LocationSet("alias", (*CLUSTERS_OF_FLOW, cluster(), *(locations[-1] for locations in _ALIASES.values())))


def of_alias(side: str) -> tuple[SettingLocation, ...]:
    """Where the alias is read that MM2's connectors have for their `source` or `target`."""
    return _ALIASES[side]


def of_security(client: str, of_connectors: bool) -> tuple[SettingLocation, ...]:
    """Where the security of a flow's client is read: of `source.consumer`, `source.admin`, `target.admin` or
    `target.producer`, which writes records. MM2's driver repeats `A.x` and `x` as `source.consumer.x`, so both win over
    `A->B.consumer.x`; in a connector, `consumer.x` wins over `source.cluster.x`."""
    side, _, kind = client.partition(".")
    at = source if side == "source" else target
    of_cluster = (at(), top())
    if kind == "producer":
        return *DATA_PRODUCER, *of_cluster
    own = (flow(f"{client}."), at(f"{kind}."))
    of_flow = (flow(f"{kind}."), flow(f"{side}.cluster."))
    return (*own, *of_flow, *of_cluster) if of_connectors else (*own, *of_cluster, *of_flow)


# In the order of the reference page.
ALL = (
    TOP,
    CLUSTER,
    ALIAS,
    FLOW,
    FLOW_ONLY,
    LocationSet("converter", (flow(), top(), target())),
    PROVIDERS,
    CONSUMER,
    PRODUCER,
    _ADMIN,
    _joined(CONSUMER, PRODUCER),
    _joined(CONSUMER, _ADMIN),
    _joined(PRODUCER, _ADMIN),
    _joined(PRODUCER, WORKER),
    _joined(CONSUMER, PRODUCER, WORKER),
    LocationSet("any client", (*_CLIENTS.read, target()), _CLIENTS.also),
    CLIENT_CLUSTER,
    RECORDS_CLUSTER,
    LocationSet("any client or flow", (*_CLIENTS.read, target(), flow(), top()), _CLIENTS.also),
    SECURITY,
    WORKER,
    WORKER_TOP_FIRST,
)
