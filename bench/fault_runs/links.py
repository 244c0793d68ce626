"""The links between Heliograph and the brokers: a proxy process, and what can be done to its links."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fault_runs import proxy
from fault_runs.proxy import Rule


class Links:
    """One proxy process for all links. `ports`: where each listens, by name. They lead nowhere before `lead`."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._lock = threading.Lock()
        descriptions = [f"{name}={listen}" for name, listen in ports.items()]
        # A session of its own: Ctrl-C is for the program, which then ends the proxy by closing its input.
        self._process = subprocess.Popen(
            [sys.executable, proxy.__file__, *descriptions],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._read()

    def lead(self, link: str, upstream: int) -> None:
        self._ask({"link": link, "upstream": upstream})

    def set_rule(self, link: str, rule: Rule) -> None:
        self._ask({"link": link, "rule": asdict(rule)})

    def act(self, link: str, name: str) -> None:
        """`reset`, `half-close-requests` or `half-close-answers`, once, to the connections that there are."""
        self._ask({"link": link, "act": name})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, command: dict[str, Any]) -> None:
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
            self._read()

    def _read(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("the proxy has ended; its error is above")
