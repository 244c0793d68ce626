"""Whether this process can do its work, with the codes and messages of Connect's `GET /health` (KIP-1017)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from heliograph.model.flow import Cluster, Flow
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError, error_name

_HEALTHY = "Worker has completed startup and is ready to handle requests."
_STARTING = "Worker is still starting up."
_UNHEALTHY = "Worker was unable to handle this request and may be unable to handle other requests."
_TIMEOUT = 10.0  # Connect's own for this call; for all others it is 90 s


@dataclass(frozen=True, slots=True)
class HealthStatus:
    code: int
    status: str
    message: str


HEALTHY = HealthStatus(200, "healthy", _HEALTHY)


@dataclass(frozen=True, slots=True)
class Storage:
    """A cluster that holds what this process needs to run, and the topics that must have leaders there."""

    cluster: Cluster
    topics: tuple[str, ...] = ()


class RunningFlows(Protocol):
    """What health depends on; a `Supervisor` has it."""

    ready: asyncio.Event

    @property
    def spark_is_up(self) -> bool: ...

    def copying(self) -> tuple[Flow, ...]: ...


class Health:
    """`storage` lists the clusters to ask. One that answers is enough: a flow whose target is down fails on its own,
    and a restart of the process would only stop the other flows."""

    def __init__(
        self, flows: RunningFlows, storage: Callable[[], Sequence[Storage]], *, timeout: float = _TIMEOUT
    ) -> None:
        self._flows = flows
        self._storage = storage
        self._timeout = timeout
        self._spark_was_up = False

    async def check(self) -> HealthStatus:
        if not self._flows.ready.is_set():
            return _starting("Clusters and Spark are not ready yet.")
        if self._flows.spark_is_up:
            self._spark_was_up = True
        elif self._flows.copying():
            return _unhealthy("Spark's JVM has died.") if self._spark_was_up else _starting("Spark is not up yet.")
        problems = await asyncio.gather(*(self._problem(storage) for storage in self._storage()))
        if problems and all(problems):
            return _unhealthy(" ".join(problems))
        return HEALTHY

    async def _problem(self, storage: Storage) -> str:
        """Why a storage cannot be used; empty if it can."""
        alias = storage.cluster.alias
        client = ClusterClient(storage.cluster)
        try:
            async with asyncio.timeout(self._timeout):
                topics = (await client.metadata(storage.topics)).topics
        except TimeoutError:
            return f"Cluster {alias} does not answer within {self._timeout:g} s."
        except WireError as error:
            return f"Cluster {alias} cannot be reached: {error}."
        finally:
            client.close()
        for name in storage.topics:
            if error_code := topics[name].error:
                return f"Topic {name} on cluster {alias} is not available: {error_name(error_code)}."
            if leaderless := [partition for partition, leader in topics[name].leaders.items() if leader < 0]:
                return f"Topic {name} on cluster {alias} has no leader for partition {min(leaderless)}."
        return ""


def _starting(detail: str) -> HealthStatus:
    return HealthStatus(503, "starting", f"{_STARTING} {detail}")


def _unhealthy(detail: str) -> HealthStatus:
    return HealthStatus(500, "unhealthy", f"{_UNHEALTHY} {detail}")
