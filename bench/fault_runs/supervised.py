"""The command `heliograph run` as a service manager runs it: it is started again whenever it ends.

All its processes carry a mark in their environment, by which they are found even if their parent is gone.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

MARK = "FAULT_RUN_MARK"
_RESTART_AFTER = 1.0
_STOP_WITHIN = 30.0
_EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_DAEMONS = ("heliograph.engine.daemon_ahead", "heliograph.engine.worker_daemon", "pyspark.daemon")
DRIVER, JVM, WORKER, EXECUTOR = "driver", "jvm", "worker", "executor"


class Supervised:
    """`starts` counts how often it was started. `executors` is the mark of processes that leases run in, if those are
    not its own."""

    def __init__(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, executors: str = ""
    ) -> None:
        self.mark = uuid.uuid4().hex
        self._executors = executors
        self.log = log
        self.starts = 0
        self._arguments = arguments
        self._environment = {**os.environ, **(environment or {}), MARK: self.mark}
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)

    def start(self) -> None:
        self._start()
        self._thread.start()

    def _start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "heliograph", "run", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,
            )
        self.starts += 1

    def _supervise(self) -> None:
        while not self._is_ending.is_set():
            assert self._process is not None
            self._process.wait()
            if not self._is_ending.wait(_RESTART_AFTER):
                self._start()

    def processes(self, role: str) -> list[psutil.Process]:
        """Those of the driver that runs now, oldest first. Workers: the processes that leases run in."""
        assert self._process is not None
        found = []
        where = self._executors if role in (WORKER, EXECUTOR) and self._executors else self.mark
        for process in marked(where):
            with contextlib.suppress(psutil.Error):
                if self._role(process) == role:
                    found.append(process)
        return sorted(found, key=lambda process: process.create_time())

    def _role(self, process: psutil.Process) -> str:
        assert self._process is not None
        if process.pid == self._process.pid:
            return DRIVER
        if process.name() == "java":
            return EXECUTOR if _EXECUTOR_CLASS in process.cmdline() else JVM
        parent = process.parent()
        is_forked = parent is not None and parent.cmdline() == process.cmdline()
        return WORKER if is_forked and any(name in process.cmdline() for name in _DAEMONS) else ""

    def stop(self) -> list[str]:
        """Ends it with SIGTERM. Returns what it left behind, which is killed."""
        self._is_ending.set()
        assert self._process is not None
        for process in marked(self.mark):  # one may be frozen
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_WITHIN)
        deadline = time.monotonic() + _STOP_WITHIN
        while (left := marked(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.2)
        names = []
        for process in left:
            with contextlib.suppress(psutil.Error):
                names.append(" ".join(process.cmdline())[:100])
                process.kill()
        self._thread.join(_STOP_WITHIN)
        return names


def marked(mark: str) -> list[psutil.Process]:
    """All processes that were started with this mark and have not ended."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            if f"{MARK}={mark}".encode() in environment and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
