"""One cluster of the sandbox: its brokers, their ports and files, and what can be done to them while they run.

It does not fetch Kafka (`distribution`), and it does not end the brokers with the program (`watchdog`).
"""

import logging
import re
import secrets
import shutil
import signal
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

from heliograph.sandbox.broker import (
    common_settings,
    java_command,
    kraft_settings,
    log_since,
    telling_lines,
    write_properties,
    zookeeper_server_settings,
    zookeeper_settings,
)
from heliograph.sandbox.distribution import Distribution
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.ports import HOST, free_ports, is_free
from heliograph.sandbox.probe import brokers_known_to, is_in_zookeeper
from heliograph.sandbox.processes import Processes
from heliograph.sandbox.spec import ClusterSpec

log = logging.getLogger(__name__)

_ZOOKEEPER = "zookeeper"


@dataclass(frozen=True)
class Death:
    """A process that ended without being asked to: a broker, or the ZooKeeper of an old cluster."""

    alias: str
    name: str
    status: int
    log: Path
    last_lines: tuple[str, ...]

    def __str__(self) -> str:
        how = f"killed by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        return "\n".join([f"{self.name} ended ({how}); its log says:", *("  " + line for line in self.last_lines)])


class SandboxCluster:
    """A running cluster. Brokers are numbered from 1; all methods block until done."""

    def __init__(
        self, alias: str, spec: ClusterSpec, kafka: Distribution, folder: Path, processes: Processes, taken: set[int]
    ) -> None:
        self.alias = alias
        self.spec = spec
        self.broker_ids = tuple(range(1, spec.brokers + 1))
        self._kafka = kafka
        self._folder = folder
        self._processes = processes
        # Ports of all clusters of the sandbox, the given ones included; shared with the others.
        self._taken = taken
        self._listeners: dict[int, dict[str, tuple[str, int]]] = {}
        self._controllers: dict[int, int] = {}
        self._zookeeper_port = 0
        # Names of the processes that are not meant to be running, and of those that are stopped with SIGSTOP.
        self._down: set[str] = set()
        self._paused: set[int] = set()
        self._log_offsets: dict[str, int] = {}
        self._choose_ports()

    @property
    def version(self) -> str:
        return self._kafka.version

    @property
    def classpath(self) -> str:
        """The class path the brokers run with; it has Kafka's Java clients as well."""
        return self._kafka.classpath

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, comma-separated."""
        return self.bootstrap_of("PLAINTEXT")

    def bootstrap_of(self, listener: str) -> str:
        """The same for a listener of the `ClusterSpec`."""
        return ",".join(f"{HOST}:{self._listeners[broker][listener][1]}" for broker in self.broker_ids)

    def port(self, broker: int) -> int:
        return self._listeners[broker]["PLAINTEXT"][1]

    def folder(self, broker: int) -> Path:
        """The broker's folder: `server.properties`, `server.log`, and `data` with its partitions."""
        return self._folder / self._name(broker)

    def pids(self) -> dict[int, int]:
        """Process ids of the brokers that run, by broker id."""
        exits = self._processes.exits()
        names = {broker: self._name(broker) for broker in self.broker_ids}
        return {broker: self._processes.pid(name) for broker, name in names.items() if exits.get(name, 0) is None}

    def kill(self, broker: int) -> None:
        """SIGKILL: the broker has no chance to tell anyone."""
        self._paused.discard(broker)
        self._end(self._name(broker), signal.SIGKILL, 10)

    def stop_broker(self, broker: int, timeout: float = 30) -> None:
        """SIGTERM: the broker hands over its partitions and leaves."""
        self.resume(broker)
        self._end(self._name(broker), signal.SIGTERM, timeout)

    def pause(self, broker: int) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._processes.signal(self._name(broker), signal.SIGSTOP)
        self._paused.add(broker)

    def resume(self, broker: int) -> None:
        self._processes.signal(self._name(broker), signal.SIGCONT)
        self._paused.discard(broker)

    def start_broker(self, broker: int, *, wait: bool = True, timeout: float = 60) -> None:
        """Starts a broker that was killed or stopped, on the same ports and with the same data.

        It is up when all running brokers name it to clients, itself included. A controller quorum that has lost
        its majority lets no broker in: start all but the last with `wait=False`, or use `wait_until_up`.
        """
        if broker in self.pids():
            raise SandboxError(f"{self._name(broker)} is running already")
        deadline = time.monotonic() + timeout
        if not self._kafka.kraft:
            # An old broker that finds the session of its predecessor in ZooKeeper gives up at once.
            while is_in_zookeeper(self._zookeeper_port, broker) and time.monotonic() < deadline:
                time.sleep(0.1)
        self._launch_broker(broker)
        if wait:
            self._wait_for({broker}, deadline)

    def wait_until_up(self, timeout: float = 60) -> None:
        """Waits until every running broker names every broker that is meant to run."""
        expected = {broker for broker in self.broker_ids if self._name(broker) not in self._down}
        self._wait_for(expected, time.monotonic() + timeout)

    def deaths(self) -> list[Death]:
        """The processes of this cluster that have ended by themselves."""
        exits = self._processes.exits()
        return [
            self._death(name, status)
            for name in self._names()
            if (status := exits.get(name)) is not None and name not in self._down
        ]

    # What follows is for the Sandbox.

    def launch(self) -> None:
        """Starts the processes of the cluster, and does not wait for them."""
        if not self._kafka.kraft:
            self._launch_zookeeper()
        for broker in self.broker_ids:
            self._launch_broker(broker)

    def wait_for_launch(self, deadline: float) -> None:
        """Waits until the cluster is up. If another program took one of the ports meanwhile, takes others."""
        for _ in range(2):
            try:
                self._wait_for(set(self.broker_ids), deadline)
                return
            except _PortTaken as taken:
                log.info("cluster %s: %s; trying with other ports", self.alias, str(taken).splitlines()[0])
                self.kill_all()
                self._choose_ports()
                self.launch()
        self._wait_for(set(self.broker_ids), deadline)

    def kill_all(self) -> None:
        exits = self._processes.exits()
        for name in self._names():
            if name in exits:
                self._end(name, signal.SIGKILL, 10)

    def ask_to_stop(self) -> None:
        """Sends every broker a SIGTERM, and does not wait for it to be obeyed."""
        for broker in self.pids():
            self.resume(broker)
            self._down.add(self._name(broker))
            self._processes.signal(self._name(broker), signal.SIGTERM)

    def _name(self, broker: int) -> str:
        if broker not in self.broker_ids:
            raise SandboxError(f"cluster {self.alias} has no broker {broker}, only {self.broker_ids}")
        return f"{self.alias}-{broker}"

    def _names(self) -> list[str]:
        zookeeper = [] if self._kafka.kraft else [f"{self.alias}-{_ZOOKEEPER}"]
        return zookeeper + [self._name(broker) for broker in self.broker_ids]

    def _choose_ports(self) -> None:
        for port in self.spec.ports:
            if not is_free(port):
                raise SandboxError(f"cluster {self.alias}: port {port} is in use by another program")
        # Three controllers outlive the loss of any one; two would be down with either, one only with itself.
        controllers = self.broker_ids[: 3 if self.spec.brokers >= 3 else 1]
        listeners = {"PLAINTEXT": "PLAINTEXT", **self.spec.listeners}
        wanted = len(controllers) + 1 + len(listeners) * len(self.broker_ids)
        free = free_ports(wanted, self._taken)
        self._taken.update(free)
        self._controllers = {broker: free.pop() for broker in controllers}
        self._zookeeper_port = free.pop()
        for broker in self.broker_ids:
            self._listeners[broker] = {name: (protocol, free.pop()) for name, protocol in listeners.items()}
        for broker, port in zip(self.broker_ids, self.spec.ports, strict=False):
            self._listeners[broker]["PLAINTEXT"] = ("PLAINTEXT", port)

    def _launch_broker(self, broker: int) -> None:
        folder, kafka = self.folder(broker), self._kafka
        self._paused.discard(broker)
        data = folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        if kafka.kraft:
            identity = kraft_settings(broker, self._controllers, self._listeners[broker])
            self._format(data, broker)
        else:
            identity = zookeeper_settings(broker, self._zookeeper_port, self._listeners[broker])
        settings = common_settings(self.spec.brokers) | identity | {"log.dirs": str(data)} | dict(self.spec.settings)
        write_properties(folder / "server.properties", settings)
        command = java_command(
            kafka.java,
            kafka.classpath,
            ["kafka.Kafka", "server.properties"],
            version=kafka.version,
            folder=folder,
            heap_mb=self.spec.heap_mb,
            gc=self.spec.gc,
            fast_start=self.spec.fast_start,
            archive=kafka.archive,
            flags=self.spec.jvm_flags,
        )
        self._run(self._name(broker), command, folder)

    def _launch_zookeeper(self) -> None:
        name, kafka = f"{self.alias}-{_ZOOKEEPER}", self._kafka
        folder = self._folder / name
        (folder / "data").mkdir(parents=True, exist_ok=True)
        write_properties(folder / "server.properties", zookeeper_server_settings(self._zookeeper_port, folder / "data"))
        main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", "server.properties"]
        command = java_command(
            kafka.java, kafka.classpath, main, version=kafka.version, folder=folder, heap_mb=64, fast_start=True
        )
        self._run(name, command, folder)

    def _format(self, data: Path, broker: int) -> None:
        """What `kafka-storage format` does to an empty data directory; one in use is left as it is."""
        if (data / "meta.properties").exists():
            return
        assert self._kafka.checkpoint is not None
        shutil.copyfile(self._kafka.checkpoint, data / "bootstrap.checkpoint")
        identity = {"version": "1", "cluster.id": self._cluster_id(), "node.id": str(broker)}
        write_properties(data / "meta.properties", identity)

    def _cluster_id(self) -> str:
        """The id in the data of the cluster's first broker, of this or an earlier run, else a new one."""
        first = self.folder(1) / "data" / "meta.properties"
        if first.exists() and (found := re.search(r"^cluster\.id=(\S+)", first.read_text(), re.MULTILINE)):
            return found[1]
        # Kafka's tools take an id that begins with a dash for an option.
        while (new := urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
            pass
        return new

    def _run(self, name: str, command: list[str], folder: Path) -> None:
        path = self._log(name)
        self._log_offsets[name] = path.stat().st_size if path.exists() else 0
        self._processes.start(name, command, cwd=folder, log=path)
        self._down.discard(name)

    def _end(self, name: str, number: signal.Signals, timeout: float) -> None:
        self._down.add(name)
        self._processes.signal(name, number)
        if self._processes.wait(name, timeout) is None:
            raise SandboxError(f"{name} is still running {timeout:g} s after {number.name}")

    def _wait_for(self, expected: set[int], deadline: float) -> None:
        """Waits until the expected brokers are named by all brokers that run."""
        needed = {f"{self.alias}-{_ZOOKEEPER}", *map(self._name, expected)}
        while True:
            for death in self.deaths():
                if death.name not in needed:
                    continue
                if "Address already in use" in log_since(death.log, self._log_offsets[death.name]):
                    raise _PortTaken(str(death))
                raise SandboxError(str(death))
            asked = set(self.pids()) - self._paused
            if asked and all(brokers_known_to(self.port(broker)) >= expected for broker in asked):
                return
            if time.monotonic() > deadline:
                name = self._name(min(expected))
                said = "\n".join("  " + line for line in self._last_lines(name))
                raise SandboxError(f"cluster {self.alias} is not up in time; the log of {name} says:\n{said}")
            time.sleep(0.05)

    def _death(self, name: str, status: int) -> Death:
        return Death(self.alias, name, status, self._log(name), tuple(self._last_lines(name)))

    def _last_lines(self, name: str) -> list[str]:
        return telling_lines(log_since(self._log(name), self._log_offsets[name]))

    def _log(self, name: str) -> Path:
        return self._folder / name / "server.log"


class _PortTaken(SandboxError):
    pass
