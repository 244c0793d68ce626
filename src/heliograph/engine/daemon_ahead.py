"""Spark's daemon that forks Python workers, started ahead: it loads what a lease needs while Spark's JVM starts.

    python -m heliograph.engine.daemon_ahead FD

FD is a listening socket. The process that the JVM starts as its daemon (`worker_daemon`) connects to it and hands over
its environment, its arguments and its standard streams: the JVM then talks to this process. Workers are forked from it,
so they share what is loaded. It ends with the JVM, or with the driver if no JVM has connected by then.
"""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from heliograph.imports import many_imports

_ENDS_WITHIN = 1.0
_FILES = 3  # standard input, output and error


def start_ahead(path: Path) -> "subprocess.Popen[bytes]":
    """Starts it at that socket. It ends if its standard input is closed before a JVM has connected."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(1)
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(listening.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            process_group=0,  # Ctrl-C in a terminal is for the driver only
        )


def end_ahead(process: "subprocess.Popen[bytes]") -> None:
    """After the end of the JVM, with which it ends if they were connected."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def load_everything() -> Callable[[], None]:
    """Loads what a lease needs. Returns PySpark's daemon."""
    with many_imports():
        from pyspark.daemon import manager

        import heliograph.engine.lease  # noqa: F401
        from heliograph.wire.kernels.loading import load

        load()
    return manager


def main(descriptor: int) -> None:
    listening = socket.socket(fileno=descriptor)
    manager = load_everything()
    ready, _, _ = select.select([listening, sys.stdin], [], [])
    if listening not in ready:
        return
    control, _ = listening.accept()
    listening.close()
    _take_over(control)
    # The process at the other end waits until this one has ended: workers must not keep the connection open.
    os.register_at_fork(after_in_child=control.close)
    manager()


def _take_over(control: socket.socket) -> None:
    _, descriptors, _, _ = socket.recv_fds(control, 1, _FILES)
    with control.makefile("rb") as stream:
        environment, arguments = json.loads(stream.readline())
    for number, received in enumerate(descriptors):
        os.dup2(received, number)
        os.close(received)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    sys.path[1:1] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]


if __name__ == "__main__":
    main(int(sys.argv[1]))
