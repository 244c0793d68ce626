"""Ports for servers that tests start."""

import os
import random

from heliograph.sandbox.ports import is_free

# Nobody else takes a port from here between the choice and the server's own bind: brokers choose from 20000 on, Linux
# from 32768 on for outgoing connections, and tests that run side by side have ranges of their own.
_FIRST, _LAST = 10_000, 19_999
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_size = (_LAST + 1 - _FIRST) // _workers
_left = list(range(_FIRST + _worker * _size, _FIRST + (_worker + 1) * _size))
random.SystemRandom().shuffle(_left)


def free_port() -> int:
    """A port that no other test gets."""
    while not is_free(port := _left.pop()):
        pass
    return port
