"""The sets of places that settings share, each in MirrorMaker 2's order of precedence.

In the comments and on the reference page `A->B` is a flow, `A` its source, `B` its target, `C` any cluster.
"""

from __future__ import annotations

from heliograph.config.declare.setting import LocationSet, cluster, flow, source, target, top

# MM2's driver turns `A.consumer.x` into `source.consumer.x`, which beats the `consumer.x` that `A->B.consumer.x`
# becomes.
SOURCE_CONSUMER = (flow("source.consumer."), source("consumer."), flow("consumer."))
TARGET_ADMIN = (flow("target.admin."), target("admin."), flow("admin."))
# Records are written by the Connect worker's producer. `A->B.producer.x` only reaches the one that writes offset syncs.
DATA_PRODUCER = (flow("producer.override."), target("producer."))

# Each client has a name and a timeout; those of a whole cluster, or of all clusters, are what is left.
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


TOP = LocationSet("top level", (top(),))
FLOW = LocationSet("flow", (flow(), top()))
FLOW_ONLY = LocationSet("flow only", (flow(),))
CLUSTER = LocationSet("cluster", (cluster(), top()), (*_CLIENTS, *_OTHER_CLIENTS, *_CLUSTERS_OF_FLOW))
WORKER = LocationSet("worker", (target(),))
WORKER_TOP_FIRST = LocationSet("worker, top level first", (top(), target()))
CONVERTER = LocationSet("converter", (flow(), top(), target()))
PROVIDERS = LocationSet("providers", (top(),), (flow(), target(), *_CLIENTS, *_OTHER_CLIENTS))

CONSUMER = LocationSet("consumer", SOURCE_CONSUMER, _OTHER_CONSUMERS)
PRODUCER = LocationSet("producer", DATA_PRODUCER, _OTHER_PRODUCERS)
ADMIN = LocationSet("admin", TARGET_ADMIN, _OTHER_ADMINS)
CONSUMER_PRODUCER = LocationSet(
    "consumer, producer", (*SOURCE_CONSUMER, *DATA_PRODUCER), (*_OTHER_CONSUMERS, *_OTHER_PRODUCERS)
)
CONSUMER_ADMIN = LocationSet("consumer, admin", (*SOURCE_CONSUMER, *TARGET_ADMIN), (*_OTHER_CONSUMERS, *_OTHER_ADMINS))
PRODUCER_ADMIN = LocationSet("producer, admin", (*DATA_PRODUCER, *TARGET_ADMIN), (*_OTHER_PRODUCERS, *_OTHER_ADMINS))
PRODUCER_WORKER = LocationSet("producer, worker", (*DATA_PRODUCER, target()), _OTHER_PRODUCERS)
CONSUMER_PRODUCER_WORKER = LocationSet(
    "consumer, producer, worker", (*CONSUMER_PRODUCER.read, target()), CONSUMER_PRODUCER.also
)
CLIENT = LocationSet("any client", (*_CLIENTS, target()), _OTHER_CLIENTS)
CLIENT_CLUSTER = LocationSet("any client or cluster", (*_CLIENTS, *OF_CLUSTER), _OTHER_CLIENTS)
CLIENT_FLOW = LocationSet("any client or flow", (*_CLIENTS, target(), flow(), top()), _OTHER_CLIENTS)
SECURITY = LocationSet("security", (*_CLIENTS, *_OTHER_CLIENTS, *_CLUSTERS_OF_FLOW, flow(), cluster(), top()))

WHERES = (
    TOP,
    CLUSTER,
    FLOW,
    FLOW_ONLY,
    CONVERTER,
    PROVIDERS,
    CONSUMER,
    PRODUCER,
    ADMIN,
    CONSUMER_PRODUCER,
    CONSUMER_ADMIN,
    PRODUCER_ADMIN,
    PRODUCER_WORKER,
    CONSUMER_PRODUCER_WORKER,
    CLIENT,
    CLIENT_CLUSTER,
    CLIENT_FLOW,
    SECURITY,
    WORKER,
    WORKER_TOP_FIRST,
)
