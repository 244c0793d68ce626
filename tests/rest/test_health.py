"""`GET /health` answers with Connect's codes: 200, 503 while starting, 500 when something that is needed is gone."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from heliograph.model.flow import Cluster, Flow
from heliograph.rest.health import HEALTHY, Health, HealthStatus, Storage
from heliograph.sandbox import ClusterSpec, Sandbox
from logs import Log, Pair
from rest.api import Api, connector, serving, worker_file

UNHEALTHY = "Worker was unable to handle this request and may be unable to handle other requests."


class Flows:
    """A supervisor in whatever state a test needs."""

    def __init__(self, *, is_ready: bool = True, spark_is_up: bool = True, is_copying: bool = True) -> None:
        self.ready = asyncio.Event()
        if is_ready:
            self.ready.set()
        self.spark_is_up = spark_is_up
        self.is_copying = is_copying

    def copying(self) -> tuple[Flow, ...]:
        cluster = Cluster("X", (("127.0.0.1", 1),))
        return (Flow(cluster, cluster),) if self.is_copying else ()


def _check(flows: Flows, *storage: Storage, timeout: float = 10.0) -> HealthStatus:
    return asyncio.run(Health(flows, lambda: storage, timeout=timeout).check())


def _unreachable(closed_port: int) -> Storage:
    return Storage(Cluster("B", (("127.0.0.1", closed_port),)))


def test_a_worker_is_starting_until_its_clusters_and_spark_are_ready() -> None:
    for flows in (Flows(is_ready=False), Flows(spark_is_up=False)):
        answer = _check(flows)
        assert (answer.code, answer.status) == (503, "starting")
        assert answer.message.startswith("Worker is still starting up. ")


def test_a_worker_that_copies_nothing_is_healthy_without_spark() -> None:
    assert _check(Flows(spark_is_up=False, is_copying=False)) == HEALTHY


def test_a_worker_whose_spark_has_died_is_unhealthy() -> None:
    async def check() -> tuple[HealthStatus, HealthStatus]:
        flows = Flows()
        health = Health(flows, lambda: ())
        before = await health.check()
        flows.spark_is_up = False
        return before, await health.check()

    before, after = asyncio.run(check())
    assert before == HEALTHY
    assert after == HealthStatus(500, "unhealthy", f"{UNHEALTHY} Spark's JVM has died.")


def test_a_worker_whose_storage_cannot_be_reached_is_unhealthy(closed_port: int) -> None:
    answer = _check(Flows(), _unreachable(closed_port))
    assert (answer.code, answer.status) == (500, "unhealthy")
    assert answer.message.startswith(f"{UNHEALTHY} Cluster B cannot be reached: ")


def test_a_broker_that_never_answers_does_not_hold_up_the_check() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        storage = Storage(Cluster("B", (silent.getsockname()[:2],)))
        answer = _check(Flows(), storage, timeout=0.2)
    assert answer == HealthStatus(500, "unhealthy", f"{UNHEALTHY} Cluster B does not answer within 0.2 s.")


def test_storage_needs_its_topics_and_one_reachable_target_is_enough(pair: Pair, topic: str, closed_port: int) -> None:
    cluster = pair.b.cluster
    answer = _check(Flows(), Storage(cluster, (topic,)))
    missing = f"Topic {topic} on cluster test is not available: UNKNOWN_TOPIC_OR_PARTITION."
    assert answer == HealthStatus(500, "unhealthy", f"{UNHEALTHY} {missing}")
    pair.b.create(topic)
    assert _check(Flows(), Storage(cluster, (topic,))) == HEALTHY
    assert _check(Flows(), _unreachable(closed_port), Storage(cluster)) == HEALTHY


def test_heliograph_serve_is_unhealthy_while_the_brokers_of_its_storage_topics_are_down(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (cluster,) = sandbox.start({"health": ClusterSpec(fast_start=True)})
    log = Log(cluster.bootstrap)
    file, api = worker_file(tmp_path, log, "health")
    with serving(file, api):
        assert api("PUT", "/connectors/beats/config", connector("Heartbeat", "A", (log, log), "none")).status == 201
        api.until(_answers(200, "healthy"))
        cluster.kill(1)
        api.until(_answers(500, "unhealthy"))
        cluster.start_broker(1)
        api.until(_answers(200, "healthy"))
    cluster.kill_all()


def _answers(code: int, status: str) -> Callable[[Api], bool]:
    def matches(api: Api) -> bool:
        answer = api("GET", "/health")
        return (answer.status, answer.body["status"]) == (code, status)

    return matches
