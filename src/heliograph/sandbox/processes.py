"""Starts, signals and watches child processes through a watchdog process, which outlives this one if it is killed.

Used for every JVM: brokers, ZooKeeper, and the one-off runs of Ivy and Kafka's own tools. It knows nothing of
Kafka. All calls are synchronous; they may come from several threads.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heliograph.sandbox import watchdog
from heliograph.sandbox.errors import SandboxError


class Processes:
    """Child processes and the folder they work in; both are gone once this is closed or this program has ended.

    Without `folder` a new one is made inside `within` (by default the system's place for temporary files).
    """

    folder: Path

    def __init__(
        self,
        *,
        folder: Path | None = None,
        within: Path | None = None,
        prefix: str = "heliograph-sandbox-",
        remove: bool = True,
    ) -> None:
        setup = {
            "folder": None if folder is None else str(folder.absolute()),
            "within": None if within is None else str(within.absolute()),
            "prefix": prefix,
            "remove": remove,
            "parent": os.getpid(),
        }
        self._remove = remove
        self._lock = threading.Lock()
        self._last_request = 0
        self._pids: dict[str, int] = {}
        # A session of its own: Ctrl-C in the terminal goes to this program alone, which then stops the brokers
        # in its own order.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, json.dumps(setup)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        self.folder = Path(self._answer(0)["folder"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, name: str, argv: Sequence[str], *, cwd: Path, log: Path) -> int:
        """Starts a process under a name and returns its pid; its output is added to `log`."""
        started = self._ask(do="start", name=name, argv=list(argv), cwd=str(cwd), log=str(log))
        self._pids[name] = started["pid"]
        return self._pids[name]

    def pid(self, name: str) -> int:
        return self._pids[name]

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal; one that has ended already is left alone."""
        self._ask(do="signal", name=name, number=int(number))

    def exits(self) -> dict[str, int | None]:
        """The exit status of every process started here; None while it runs."""
        exits: dict[str, int | None] = self._ask(do="poll")["exits"]
        return exits

    def wait(self, name: str, timeout: float) -> int | None:
        """The exit status of a process, or None if it is still running after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            status = self.exits()[name]
            if status is not None or time.monotonic() > deadline:
                return status
            time.sleep(0.02)

    def close(self) -> None:
        """Kills what still runs and removes the folder, unless it is to stay. May be called twice."""
        if self._watchdog.stdin is not None:
            with contextlib.suppress(OSError):
                self._watchdog.stdin.close()
        try:
            self._watchdog.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._watchdog.kill()
            self._watchdog.wait()
        if self._watchdog.stdout is not None:
            self._watchdog.stdout.close()
        # For a watchdog that was killed before it could do it.
        if self._remove:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            self._last_request += 1
            number = self._last_request
            assert self._watchdog.stdin is not None
            try:
                self._watchdog.stdin.write(json.dumps({"id": number, **request}).encode() + b"\n")
                self._watchdog.stdin.flush()
            except (OSError, ValueError) as error:
                raise SandboxError("the sandbox is closed, or its watchdog process was killed") from error
            return self._answer(number)

    def _answer(self, number: int) -> dict[str, Any]:
        assert self._watchdog.stdout is not None
        # An answer with another number belongs to a request that Ctrl-C interrupted.
        while line := self._watchdog.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer["id"] == number:
                if "error" in answer:
                    raise SandboxError(answer["error"])
                return answer
        raise SandboxError("the sandbox's watchdog process ended unexpectedly")
