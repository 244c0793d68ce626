"""Picks free loopback ports for brokers.

It does not reserve them: between the pick and the broker's own bind another program may take one, and whoever
starts the broker has to try again.
"""

import random
import socket
from collections.abc import Iterable

from heliograph.sandbox.errors import SandboxError

HOST = "127.0.0.1"

# Below 32768, where Linux begins to hand out ports for outgoing connections. A broker that is killed and started
# again must find its port free, and an outgoing connection may have taken one from that range meanwhile.
_FIRST, _LAST = 20000, 32767


def free_ports(count: int, avoid: Iterable[int] = ()) -> list[int]:
    """`count` different free ports, none of them in `avoid`."""
    candidates = list(set(range(_FIRST, _LAST + 1)) - set(avoid))
    random.SystemRandom().shuffle(candidates)
    ports: list[int] = []
    for port in candidates:
        if len(ports) == count:
            break
        if is_free(port):
            ports.append(port)
    if len(ports) < count:
        raise SandboxError(f"there are no {count} free ports between {_FIRST} and {_LAST} on {HOST}")
    return ports


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # As the broker does: connections of its predecessor in TIME_WAIT do not count.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()
        except OSError:
            return False
    return True
