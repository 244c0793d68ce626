"""Where a setting may be written, and which location wins: MirrorMaker 2's order of precedence.

In the comments and on the reference page `A->B` is a flow, `A` its source, `B` its target, `C` any cluster.
"""

from dataclasses import dataclass
from enum import Enum


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


def top(prefix: str = "") -> SettingLocation:
    return SettingLocation(Scope.TOP, prefix)


def flow(prefix: str = "") -> SettingLocation:
    return SettingLocation(Scope.FLOW, prefix)


def cluster(prefix: str = "", role: Role = Role.EITHER) -> SettingLocation:
    return SettingLocation(Scope.CLUSTER, prefix, role)


def source(prefix: str = "") -> SettingLocation:
    return cluster(prefix, Role.SOURCE)


def target(prefix: str = "") -> SettingLocation:
    return cluster(prefix, Role.TARGET)


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

# Each client has a name and a timeout, and falls back to those of its cluster, then of all clusters.
OF_SOURCE = (*SOURCE_CONSUMER, source(), top())
OF_TARGET = (*TARGET_ADMIN, target(), top())
OF_WRITING = (*DATA_PRODUCER, target(), top())
OF_CLUSTER = (cluster("admin."), cluster(), top())

_OTHER_CONSUMERS = (flow("target.consumer."), flow("consumer.override."))
_OTHER_PRODUCERS = (flow("producer."), flow("source.producer."), flow("target.producer."))
_OTHER_ADMINS = (flow("source.admin."), flow("admin.override."))
_CLUSTERS_OF_FLOW = (flow("source.cluster."), flow("target.cluster."))
_CLIENTS = (*SOURCE_CONSUMER, *DATA_PRODUCER, *TARGET_ADMIN)
_OTHER_CLIENTS = (*_OTHER_CONSUMERS, *_OTHER_PRODUCERS, *_OTHER_ADMINS)
_CONSUMER_PRODUCER = (*SOURCE_CONSUMER, *DATA_PRODUCER)
_OTHER_CONSUMERS_PRODUCERS = (*_OTHER_CONSUMERS, *_OTHER_PRODUCERS)


TOP = LocationSet("top level", (top(),))
FLOW = LocationSet("flow", (flow(), top()))
FLOW_ONLY = LocationSet("flow only", (flow(),))
CLUSTER = LocationSet("cluster", (cluster(), top()), (*_CLIENTS, *_OTHER_CLIENTS, *_CLUSTERS_OF_FLOW))
PROVIDERS = LocationSet("providers", (top(),), (flow(), target(), *_CLIENTS, *_OTHER_CLIENTS))
CONSUMER = LocationSet("consumer", SOURCE_CONSUMER, _OTHER_CONSUMERS)
PRODUCER = LocationSet("producer", DATA_PRODUCER, _OTHER_PRODUCERS)
CLIENT_CLUSTER = LocationSet("any client or cluster", (*_CLIENTS, *OF_CLUSTER), _OTHER_CLIENTS)
SECURITY = LocationSet("security", (*_CLIENTS, *_OTHER_CLIENTS, *_CLUSTERS_OF_FLOW, flow(), cluster(), top()))
WORKER = LocationSet("worker", (target(),))
WORKER_TOP_FIRST = LocationSet("worker, top level first", (top(), target()))

ALL = (
    TOP,
    CLUSTER,
    FLOW,
    FLOW_ONLY,
    LocationSet("converter", (flow(), top(), target())),
    PROVIDERS,
    CONSUMER,
    PRODUCER,
    LocationSet("admin", TARGET_ADMIN, _OTHER_ADMINS),
    LocationSet("consumer, producer", _CONSUMER_PRODUCER, _OTHER_CONSUMERS_PRODUCERS),
    LocationSet("consumer, admin", (*SOURCE_CONSUMER, *TARGET_ADMIN), (*_OTHER_CONSUMERS, *_OTHER_ADMINS)),
    LocationSet("producer, admin", (*DATA_PRODUCER, *TARGET_ADMIN), (*_OTHER_PRODUCERS, *_OTHER_ADMINS)),
    LocationSet("producer, worker", (*DATA_PRODUCER, target()), _OTHER_PRODUCERS),
    LocationSet("consumer, producer, worker", (*_CONSUMER_PRODUCER, target()), _OTHER_CONSUMERS_PRODUCERS),
    LocationSet("any client", (*_CLIENTS, target()), _OTHER_CLIENTS),
    CLIENT_CLUSTER,
    LocationSet("any client or flow", (*_CLIENTS, target(), flow(), top()), _OTHER_CLIENTS),
    SECURITY,
    WORKER,
    WORKER_TOP_FIRST,
)
