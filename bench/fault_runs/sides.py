"""The two clusters of a run: three brokers each, and a proxy between them and Heliograph.

Heliograph knows brokers by the addresses of the proxy only. Writers, readers and the nemesis use the brokers' own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from fault_runs.links import Links
from heliograph.model.flow import Cluster
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.sandbox.ports import HOST, free_ports
from heliograph.wire.cluster import ClusterClient

T = TypeVar("T")
BROKERS = 3
SOURCE, TARGET = "S", "T"
_PROXIED = "PROXIED"
_HEAP_MB = 224
_SETTINGS = {
    "min.insync.replicas": "2",
    "log.cleaner.backoff.ms": "1000",
    "log.retention.ms": "-1",
    "transaction.max.timeout.ms": "60000",
    # A transaction whose producer was replaced is aborted soon, or it would hold up consumers of the source.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


@dataclass(frozen=True)
class Side:
    cluster: SandboxCluster
    proxied: str  # bootstrap servers, for Heliograph
    links: Links

    @property
    def alias(self) -> str:
        return self.cluster.alias

    @property
    def bootstrap(self) -> str:
        """For everybody else."""
        return self.cluster.bootstrap

    def link(self, broker: int) -> str:
        return f"{self.alias}-{broker}"

    def run(self, do: Callable[[ClusterClient], Awaitable[T]]) -> T:
        """Runs something with a client that goes to the brokers directly."""

        async def main() -> T:
            addresses = [address.split(":") for address in self.bootstrap.split(",")]
            cluster = Cluster("faults", tuple((host, int(port)) for host, port in addresses), request_timeout=10.0)
            client = ClusterClient(cluster)
            try:
                await client.connect()
                return await do(client)
            finally:
                client.close()

        return asyncio.run(main())


@contextmanager
def started(target_settings: Mapping[str, str]) -> Iterator[tuple[Sandbox, Side, Side]]:
    """Both clusters, for as long as the block lasts. `target_settings`: in addition, for brokers of the target."""
    chosen = free_ports(2 * BROKERS)
    sides = {SOURCE: chosen[:BROKERS], TARGET: chosen[BROKERS:]}
    specs = {
        alias: ClusterSpec(
            brokers=BROKERS,
            settings=_SETTINGS | dict(target_settings if alias == TARGET else {}),
            heap_mb=_HEAP_MB,
            fast_start=True,
            listeners={_PROXIED: "PLAINTEXT"},
            advertised_ports={_PROXIED: tuple(advertised)},
        )
        for alias, advertised in sides.items()
    }
    # The proxy listens before brokers choose their ports.
    links = Links({f"{alias}-{broker}": port for alias, ports in sides.items() for broker, port in enumerate(ports, 1)})
    try:
        with Sandbox() as sandbox:
            clusters = sandbox.start(specs, timeout=240)
            found = []
            for cluster in clusters:
                side = Side(cluster, ",".join(f"{HOST}:{port}" for port in sides[cluster.alias]), links)
                for broker, address in zip(cluster.broker_ids, cluster.bootstrap_of(_PROXIED).split(","), strict=True):
                    links.lead(side.link(broker), int(address.rpartition(":")[2]))
                found.append(side)
            source, target = found
            yield sandbox, source, target
    finally:
        links.close()
