"""Real Kafka clusters on loopback, without Docker, for as long as a `with` block or the program lasts.

    with Sandbox() as sandbox:
        a, b = sandbox.start({"A": ClusterSpec(), "B": ClusterSpec(brokers=3)})

It does not create topics or speak to the brokers as a client would: any Kafka client does, with `a.bootstrap`.
"""

import contextlib
import re
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from heliograph.sandbox.broker import property_lines
from heliograph.sandbox.certificates import Authority
from heliograph.sandbox.cluster import SandboxCluster
from heliograph.sandbox.cluster_ports import ClusterPorts
from heliograph.sandbox.cluster_processes import Death
from heliograph.sandbox.cluster_security import ClusterSecurity, allowed_urls
from heliograph.sandbox.distribution import Distribution, distribution
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.processes import Processes
from heliograph.sandbox.spec import ClusterSpec

PROPERTIES_HEADER = "# Written by the Heliograph sandbox"

_INTERNAL_TOPICS = (
    "checkpoints.topic",
    "heartbeats.topic",
    "offset-syncs.topic",
    "offset.storage",
    "status.storage",
    "config.storage",
)


class Sandbox:
    """A folder and the clusters that run in it.

    Without a `directory` the folder is a new temporary one, and is gone when the sandbox stops, or however else
    this program ends, unless `keep` is true. A `directory` always stays, and clusters of the same name found in it
    are continued with their data.
    """

    def __init__(self, directory: Path | str | None = None, *, keep: bool = False) -> None:
        self.kept = keep or directory is not None
        chosen = None if directory is None else Path(directory).expanduser()
        self._processes = Processes(folder=chosen, remove=not self.kept)
        self.folder = self._processes.folder
        self.clusters: dict[str, SandboxCluster] = {}
        self.authority = Authority()
        self._ports_taken: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, specs: Mapping[str, ClusterSpec], *, timeout: float = 120) -> list[SandboxCluster]:
        """Starts clusters by alias, all at the same time, and returns them in the same order once all are up.

        If one fails none is left running. `timeout` is for the start itself, not for fetching Kafka.
        """
        for alias in specs:
            if not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*", alias):
                raise SandboxError(f"{alias!r} is no alias for a cluster: letters, digits, '_', '.' and '-' are")
            if alias in self.clusters:
                raise SandboxError(f"there is a cluster {alias} in this sandbox already")
        # All given ports are known before the first free one is picked.
        for alias, spec in specs.items():
            if taken := self._ports_taken.intersection(spec.ports):
                raise SandboxError(f"cluster {alias}: another cluster of this sandbox has port {min(taken)}")
            self._ports_taken.update(spec.ports)
        kafkas = {version: distribution(version) for version in dict.fromkeys(s.version for s in specs.values())}
        started = [self._cluster(alias, spec, kafkas[spec.version]) for alias, spec in specs.items()]
        try:
            for cluster in started:
                cluster.launch()
            deadline = time.monotonic() + timeout
            for cluster in started:
                cluster.wait_for_launch(deadline)
        except BaseException:
            with contextlib.suppress(SandboxError):
                for cluster in started:
                    cluster.security.close()
                    cluster.kill_all()
            raise
        self.clusters.update({cluster.alias: cluster for cluster in started})
        return started

    def _cluster(self, alias: str, spec: ClusterSpec, kafka: Distribution) -> SandboxCluster:
        ports = ClusterPorts(alias, spec, self._ports_taken)
        security = ClusterSecurity(alias, spec, self.folder, self.authority, ports)
        return SandboxCluster(alias, spec, kafka, self.folder, self._processes, ports, security)

    def stop(self) -> None:
        """Ends all brokers and removes the folder, unless it is to stay. May be called twice."""
        if self.kept:
            with contextlib.suppress(SandboxError):
                self._stop_in_order(patience=5)
        for cluster in self.clusters.values():
            cluster.security.close()
        self.clusters.clear()
        self._processes.close()

    def _stop_in_order(self, patience: float) -> None:
        """For data that will be read again. Brokers that are controllers too take each other's quorum away, and the
        last one would wait for it for minutes: it is killed in the end, and recovers its log when it next starts."""
        for cluster in self.clusters.values():
            cluster.ask_to_stop()
        deadline = time.monotonic() + patience
        while any(cluster.pids() for cluster in self.clusters.values()) and time.monotonic() < deadline:
            time.sleep(0.05)

    def deaths(self) -> list[Death]:
        """Brokers that have ended by themselves, in any cluster; those killed or stopped here do not count."""
        return [death for cluster in self.clusters.values() for death in cluster.deaths()]

    @property
    def client_flags(self) -> tuple[str, ...]:
        """Flags for the JVM of a client, such as MirrorMaker 2: it needs them if a cluster has OAUTHBEARER."""
        servers = [cluster.security.token_server for cluster in self.clusters.values()]
        urls = [server.url for server in servers if server is not None]
        return (allowed_urls(*urls),) if urls else ()

    def properties(self) -> str:
        """The text of an mm2.properties that mirrors the first two clusters to each other. It has the passwords."""
        if len(self.clusters) < 2:
            raise SandboxError("mirroring takes two clusters, and this sandbox has fewer")
        a, b = list(self.clusters.values())[:2]
        copies = min(3, a.spec.brokers, b.spec.brokers)
        lines = [
            f"{PROPERTIES_HEADER}: mirrors {a.alias} and {b.alias} to each other.",
            "# The addresses are good for as long as the sandbox runs.",
            "",
            f"clusters = {a.alias}, {b.alias}",
        ]
        for cluster in (a, b):
            settings = cluster.security.client_settings()
            lines += property_lines({f"{cluster.alias}.{key}": value for key, value in settings.items()})
        lines.append("")
        for source, target in ((a, b), (b, a)):
            lines += [f"{source.alias}->{target.alias}.enabled = true", f"{source.alias}->{target.alias}.topics = .*"]
        lines += [
            "",
            "# No more copies of a partition than the smaller cluster has brokers.",
            f"replication.factor = {copies}",
        ]
        lines += [f"{topic}.replication.factor = {copies}" for topic in _INTERNAL_TOPICS]
        lines += [
            "",
            "# New topics are noticed within seconds; the default is ten minutes.",
            "refresh.topics.interval.seconds = 5",
            "",
        ]
        return "\n".join(lines)
