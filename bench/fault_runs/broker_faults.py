"""Faults of brokers: killed, frozen, restarted in turn; leaders that move; producers that are forgotten."""

import random
from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from fault_runs.scene import Applied, Fault, Scene
from fault_runs.sides import Side
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError

_UP_WITHIN = 180.0
_BROKER_CONFIG = 4
_SET, _DELETE = 0, 1
_EXPIRATION = "producer.id.expiration.ms"
Which = Callable[[Scene], Side]


def _source(scene: Scene) -> Side:
    return scene.source


def _target(scene: Scene) -> Side:
    return scene.target


def _kill(which: Which) -> Callable[[Scene, random.Random], Applied]:
    def apply(scene: Scene, rng: random.Random) -> Applied:
        cluster = which(scene).cluster
        broker = rng.choice(cluster.broker_ids)
        cluster.kill(broker)
        return Applied(f"broker {cluster.alias}-{broker}", lambda: cluster.start_broker(broker, timeout=_UP_WITHIN))

    return apply


def _freeze(which: Which) -> Callable[[Scene, random.Random], Applied]:
    def apply(scene: Scene, rng: random.Random) -> Applied:
        cluster = which(scene).cluster
        broker = rng.choice(cluster.broker_ids)
        cluster.pause(broker)

        def thaw() -> None:
            cluster.resume(broker)
            cluster.wait_until_up(_UP_WITHIN)

        return Applied(f"broker {cluster.alias}-{broker}", thaw)

    return apply


def _roll(which: Which) -> Callable[[Scene, random.Random], Applied]:
    def apply(scene: Scene, rng: random.Random) -> Applied:
        cluster = which(scene).cluster
        brokers = rng.sample(cluster.broker_ids, len(cluster.broker_ids))
        for broker in brokers:
            cluster.stop_broker(broker, timeout=60)
            cluster.start_broker(broker, timeout=_UP_WITHIN)
        return Applied(f"cluster {cluster.alias}, brokers {', '.join(map(str, brokers))}")

    return apply


def _move_leaders(which: Which) -> Callable[[Scene, random.Random], Applied]:
    """Another order of replicas for each partition, and an election that makes the first one lead."""

    def apply(scene: Scene, rng: random.Random) -> Applied:
        side = which(scene)

        async def partitions(client: ClusterClient) -> list[tuple[str, int]]:
            topics = (await client.metadata(None)).topics
            return sorted((name, number) for name, topic in topics.items() for number in topic.leaders)

        places = side.run(partitions)
        brokers = side.cluster.broker_ids
        orders = {TopicPartition(*place): rng.sample(brokers, len(brokers)) for place in places}
        admin: Any = KafkaAdminClient(bootstrap_servers=side.bootstrap, request_timeout_ms=20000)
        try:
            admin.alter_partition_reassignments(orders)
            wanted: dict[str, list[int]] = {}
            for topic, number in places:
                wanted.setdefault(topic, []).append(number)
            admin.elect_leaders(0, wanted, raise_errors=False)
        finally:
            admin.close()
        return Applied(f"cluster {side.alias}, {len(places)} partitions")

    return apply


def _forget_producers(scene: Scene, _rng: random.Random) -> Applied:
    """The setting is dynamic; how often a broker looks is not, and is a second on the target."""
    side = scene.target
    _set_for_all_brokers(side, _EXPIRATION, "100")
    return Applied(f"cluster {side.alias}", lambda: _set_for_all_brokers(side, _EXPIRATION, None))


def _set_for_all_brokers(side: Side, name: str, value: str | None) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    setting = resource.AlterableConfig(name=name, config_operation=_DELETE if value is None else _SET, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=_BROKER_CONFIG, resource_name="", configs=[setting])], validate_only=False
    )

    async def alter(client: ClusterClient) -> None:
        (answer,) = (await (await client.controller()).request(request)).responses
        if answer.error_code:
            raise BrokerError(answer.error_code, answer.error_message)

    side.run(alter)


def broker_faults() -> list[Fault]:
    faults = []
    for which, name in ((_source, "source"), (_target, "target")):
        faults += [
            Fault(
                f"kill-{name}-broker", f"SIGKILL of a broker of the {name}; it is started again", _kill(which), (2, 8)
            ),
            Fault(
                f"freeze-{name}-broker",
                f"SIGSTOP of a broker of the {name} for less than its session",
                _freeze(which),
                (1, 3),
            ),
            Fault(
                f"freeze-{name}-broker-long",
                "the same, until its session has ended and others lead",
                _freeze(which),
                (6, 12),
            ),
            Fault(
                f"roll-{name}", f"an orderly restart of all brokers of the {name}, one after the other", _roll(which)
            ),
            Fault(
                f"move-{name}-leaders",
                f"a new order of replicas for all partitions of the {name}, and an election",
                _move_leaders(which),
            ),
        ]
    text = f"the target expires producer ids 0.1 s after their last record (`{_EXPIRATION}`)"
    return [*faults, Fault("forget-producers", text, _forget_producers, (8, 15))]
