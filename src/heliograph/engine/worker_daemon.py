"""What Spark's JVM starts as its daemon that forks Python workers.

Used where Spark runs on this machine. A daemon that was started ahead (`daemon_ahead`) has everything loaded that a
lease needs: it takes over the environment and the standard streams of this process, which then only waits for its end.
Without one, this process becomes the daemon.
"""

import json
import os
import socket
import sys

# Names the socket of a daemon that was started ahead.
SOCKET = "HELIOGRAPH_WORKER_DAEMON"


def main() -> None:
    path = os.environ.get(SOCKET)
    if path is None or not _hand_over(path):
        # Imported late: a process that hands over does without.
        from heliograph.engine.daemon_ahead import load_everything

        load_everything()()


def _hand_over(path: str) -> bool:
    """Returns when the other daemon has ended. False if there is none, or it serves another process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        try:
            control.connect(path)
        except OSError:
            return False
        socket.send_fds(control, [b"\0"], [0, 1, 2])
        with control.makefile("wb") as stream:
            stream.write(json.dumps([dict(os.environ), sys.argv]).encode() + b"\n")
        control.recv(1)
        return True


if __name__ == "__main__":
    main()
