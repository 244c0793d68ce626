"""What the tests of the sandbox share: waiting for things, and seeing whether a process is there."""

import time
from collections.abc import Callable

import psutil


def wait_for(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    # A zombie has ended; who collects it, and when, depends on the machine's first process.
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
