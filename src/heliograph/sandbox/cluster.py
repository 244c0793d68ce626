"""One cluster of the sandbox, and what can be done to its brokers while they run.

It does not download Kafka (`distribution`), and it does not end the brokers with the program (`watchdog`).
"""

import logging
import signal
import time
from pathlib import Path

from heliograph.sandbox.cluster_ports import PLAINTEXT, ClusterPorts
from heliograph.sandbox.cluster_processes import ClusterProcesses, Death
from heliograph.sandbox.cluster_security import ClusterSecurity
from heliograph.sandbox.distribution import Distribution
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.launch import prepare_broker, prepare_zookeeper
from heliograph.sandbox.probe import brokers_known_to, is_in_zookeeper
from heliograph.sandbox.processes import Processes
from heliograph.sandbox.spec import ClusterSpec

log = logging.getLogger(__name__)


class SandboxCluster:
    """A running cluster. Brokers are numbered from 1; all methods block until done."""

    def __init__(
        self,
        alias: str,
        spec: ClusterSpec,
        kafka: Distribution,
        folder: Path,
        processes: Processes,
        ports: ClusterPorts,
        security: ClusterSecurity,
    ) -> None:
        self.alias = alias
        self.spec = spec
        self.security = security
        self.broker_ids = tuple(range(1, spec.brokers + 1))
        self._kafka = kafka
        self._processes = ClusterProcesses(alias, self.broker_ids, folder, processes)
        self._ports = ports
        self._paused: set[int] = set()  # brokers that are stopped with SIGSTOP

    @property
    def version(self) -> str:
        return self._kafka.version

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, comma-separated, for clients that do not log in: see `security` for others."""
        return self.bootstrap_of(PLAINTEXT)

    def bootstrap_of(self, listener: str) -> str:
        """The same for a listener of the `ClusterSpec`."""
        return self._ports.bootstrap(listener)

    def port(self, broker: int) -> int:
        return self._ports.port(broker)

    def folder(self, broker: int) -> Path:
        """The broker's folder: `server.properties`, `server.log`, and `data` with its partitions."""
        return self._processes.folder(self._processes.name(broker))

    def pids(self) -> dict[int, int]:
        """Process ids of the brokers that run, by broker id."""
        return self._processes.pids()

    def kill(self, broker: int) -> None:
        """SIGKILL: the broker cannot shut down in an orderly way."""
        self._paused.discard(broker)
        self._processes.end(self._processes.name(broker), signal.SIGKILL, 10)

    def stop_broker(self, broker: int, timeout: float = 30) -> None:
        """SIGTERM: the broker hands over its partitions and leaves."""
        self.resume(broker)
        self._processes.end(self._processes.name(broker), signal.SIGTERM, timeout)

    def pause(self, broker: int) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._processes.send(self._processes.name(broker), signal.SIGSTOP)
        self._paused.add(broker)

    def resume(self, broker: int) -> None:
        self._processes.send(self._processes.name(broker), signal.SIGCONT)
        self._paused.discard(broker)

    def start_broker(self, broker: int, *, wait: bool = True, timeout: float = 60) -> None:
        """Starts a broker that was killed or stopped, on the same ports and with the same data.

        It is up when all running brokers name it to clients, itself included. A controller quorum that has lost
        its majority admits no broker: start all but the last with `wait=False`, or use `wait_until_up`.
        """
        if broker in self.pids():
            raise SandboxError(f"{self._processes.name(broker)} is running already")
        deadline = time.monotonic() + timeout
        if not self._kafka.kraft:
            # An old broker gives up at once if ZooKeeper still has the session of its predecessor.
            while is_in_zookeeper(self._ports.zookeeper, broker) and time.monotonic() < deadline:
                time.sleep(0.1)
        self._launch_broker(broker)
        if wait:
            self._wait_for({broker}, deadline)

    def wait_until_up(self, timeout: float = 60) -> None:
        """Waits until every running broker names every broker that is meant to run."""
        self._wait_for(self._processes.meant_to_run(), time.monotonic() + timeout)

    def deaths(self) -> list[Death]:
        """The processes of this cluster that have ended by themselves."""
        return self._processes.deaths()

    # What follows is for the Sandbox.

    def launch(self) -> None:
        """Starts the processes of the cluster, and does not wait for them."""
        if not self._kafka.kraft:
            zookeeper = self._processes.zookeeper
            command = prepare_zookeeper(self._kafka, self._ports.zookeeper, self._processes.folder(zookeeper))
            self._processes.start(zookeeper, command)
        for broker in self.broker_ids:
            self._launch_broker(broker)

    def wait_for_launch(self, deadline: float) -> None:
        """Waits until the cluster is up. Takes other ports if another program took one of them meanwhile."""
        for _ in range(2):
            try:
                self._wait_for(set(self.broker_ids), deadline)
                break
            except _PortTaken as taken:
                log.info("cluster %s: %s; trying with other ports", self.alias, str(taken).splitlines()[0])
                self.kill_all()
                self._ports.choose()
                self.launch()
        else:
            self._wait_for(set(self.broker_ids), deadline)
        self.security.create_users(deadline)

    def kill_all(self) -> None:
        self._processes.kill_all()

    def ask_to_stop(self) -> None:
        """Sends every broker a SIGTERM, and does not wait for it to end."""
        for broker in self.pids():
            self.resume(broker)
            self._processes.ask_to_stop(self._processes.name(broker))

    def _launch_broker(self, broker: int) -> None:
        self._paused.discard(broker)
        spec = self.security.applied_to(self.spec)
        command = prepare_broker(broker, spec, self._kafka, self._ports, self.folder(broker), self.folder(1))
        self._processes.start(self._processes.name(broker), command)

    def _wait_for(self, expected: set[int], deadline: float) -> None:
        """Waits until all running brokers name the expected brokers."""
        needed = {self._processes.zookeeper, *map(self._processes.name, expected)}
        while True:
            for death in self.deaths():
                if death.name not in needed:
                    continue
                if "Address already in use" in self._processes.log_of_last_start(death.name):
                    raise _PortTaken(str(death))
                raise SandboxError(str(death))
            asked = set(self.pids()) - self._paused
            if asked and all(brokers_known_to(self.port(broker)) >= expected for broker in asked):
                return
            if time.monotonic() > deadline:
                name = self._processes.name(min(expected))
                lines = "\n".join("  " + line for line in self._processes.last_lines(name))
                raise SandboxError(f"cluster {self.alias} is not up in time; the log of {name} says:\n{lines}")
            time.sleep(0.05)


class _PortTaken(SandboxError):
    pass
