"""The processes of one cluster: which are meant to run, which have died, and what their logs say."""

import signal
from dataclasses import dataclass
from pathlib import Path

from heliograph.sandbox.broker import log_since, telling_lines
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.processes import Processes


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


class ClusterProcesses:
    """Each process has a folder of its name, with `server.log` in it."""

    def __init__(self, alias: str, broker_ids: tuple[int, ...], folder: Path, processes: Processes) -> None:
        self.alias = alias
        self.broker_ids = broker_ids
        self.zookeeper = f"{alias}-zookeeper"
        self._folder = folder
        self._processes = processes
        self._down: set[str] = set()  # those that are not meant to run
        self._log_offsets: dict[str, int] = {}  # where the log of the last start begins

    def name(self, broker: int) -> str:
        if broker not in self.broker_ids:
            raise SandboxError(f"cluster {self.alias} has no broker {broker}, only {self.broker_ids}")
        return f"{self.alias}-{broker}"

    def folder(self, name: str) -> Path:
        return self._folder / name

    def log(self, name: str) -> Path:
        return self._folder / name / "server.log"

    def pids(self) -> dict[int, int]:
        """Process ids of the brokers that run, by broker id."""
        exits = self._processes.exits()
        names = {broker: self.name(broker) for broker in self.broker_ids}
        return {broker: self._processes.pid(name) for broker, name in names.items() if exits.get(name, 0) is None}

    def start(self, name: str, command: list[str]) -> None:
        log = self.log(name)
        self._log_offsets[name] = log.stat().st_size if log.exists() else 0
        self._processes.start(name, command, cwd=self.folder(name), log=log)
        self._down.discard(name)

    def send(self, name: str, number: signal.Signals) -> None:
        self._processes.signal(name, number)

    def ask_to_stop(self, name: str) -> None:
        self._down.add(name)
        self._processes.signal(name, signal.SIGTERM)

    def end(self, name: str, number: signal.Signals, timeout: float) -> None:
        self._down.add(name)
        self._processes.signal(name, number)
        if self._processes.wait(name, timeout) is None:
            raise SandboxError(f"{name} is still running {timeout:g} s after {number.name}")

    def kill_all(self) -> None:
        exits = self._processes.exits()
        for name in self._names():
            if name in exits:
                self.end(name, signal.SIGKILL, 10)

    def meant_to_run(self) -> set[int]:
        return {broker for broker in self.broker_ids if self.name(broker) not in self._down}

    def deaths(self) -> list[Death]:
        """The processes that have ended by themselves."""
        exits = self._processes.exits()
        return [
            Death(self.alias, name, status, self.log(name), tuple(self.last_lines(name)))
            for name in self._names()
            if (status := exits.get(name)) is not None and name not in self._down
        ]

    def log_of_last_start(self, name: str) -> str:
        return log_since(self.log(name), self._log_offsets[name])

    def last_lines(self, name: str) -> list[str]:
        return telling_lines(self.log_of_last_start(name))

    def _names(self) -> list[str]:
        return [self.zookeeper, *map(self.name, self.broker_ids)]
