"""CPU time and memory of a tool with all its children, and of the brokers."""

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

_LOOK_FOR_CHILDREN_EVERY = 0.5


class Tree:
    """Processes and their descendants. The CPU time of processes that have ended still counts."""

    def __init__(self, pids: Iterable[int], with_children: bool = True) -> None:
        self._roots = [psutil.Process(pid) for pid in pids]
        self._with_children = with_children
        self._known: dict[int, psutil.Process] = {}
        self._spent: dict[int, float] = {}
        self._looked = -_LOOK_FOR_CHILDREN_EVERY

    def cpu(self) -> float:
        """Core-seconds so far, user and system."""
        self._look()
        for pid, process in self._known.items():
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._spent[pid] = times.user + times.system
        return sum(self._spent.values())

    def memory(self) -> int:
        """Bytes now: PSS, where pages that several processes share count once. RSS where the kernel has no PSS."""
        self._look()
        total = 0
        for process in self._known.values():
            with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                total += _memory(process)
        return total

    def pids(self) -> list[int]:
        self.refresh()
        return list(self._known)

    def refresh(self) -> None:
        """Looks for children now, so that the next answer includes their work so far."""
        self._looked = time.monotonic()
        processes: list[psutil.Process] = []
        for root in self._roots:
            with contextlib.suppress(psutil.NoSuchProcess):
                processes += [root, *(root.children(recursive=True) if self._with_children else [])]
        self._known = {process.pid: process for process in processes}

    def _look(self) -> None:
        if time.monotonic() > self._looked + _LOOK_FOR_CHILDREN_EVERY:
            self.refresh()


def _memory(process: psutil.Process) -> int:
    rollup = Path(f"/proc/{process.pid}/smaps_rollup")
    if rollup.exists():
        for line in rollup.read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return int(process.memory_info().rss)


@dataclass(frozen=True)
class Machine:
    """Seconds of all cores since boot: in all, at work, and given to other guests by the hypervisor."""

    total: float
    busy: float
    stolen: float

    @classmethod
    def now(cls) -> "Machine":
        times = psutil.cpu_times()
        stolen = getattr(times, "steal", 0.0)
        # Linux counts the time of guests of this machine as user time as well.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return cls(total, total - times.idle - getattr(times, "iowait", 0.0) - stolen, stolen)

    def steal_since(self, before: "Machine") -> float:
        return (self.stolen - before.stolen) / max(self.total - before.total, 1e-9)
