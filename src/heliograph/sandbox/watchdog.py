"""The process that is the parent of every JVM of a sandbox, so that none outlives the program that asked for it.

It reads one JSON request a line on stdin and answers each with one JSON line on stdout. When stdin ends, which
it does however the program ends, `kill -9` included, it kills every child and removes the sandbox's folder.

It runs by file path with nothing but the standard library (`python -I -S watchdog.py`), hence no imports from
heliograph. It does not restart, watch or judge its children: `heliograph.sandbox.processes` asks, this obeys.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

PR_SET_PDEATHSIG = 1
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Watchdog:
    def __init__(self) -> None:
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.pid = os.getpid()
        # Loaded before any fork: between fork and exec a child may only make the call.
        self.libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def die_with_me(self) -> None:
        if self.libc is not None:
            self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            # The watchdog may have died between the fork and the call above: then no signal will ever come.
            if os.getppid() != self.pid:
                os._exit(1)

    def start(self, name: str, argv: list[str], cwd: str, log: str) -> dict[str, Any]:
        last = self.children.get(name)
        if last is not None and last.poll() is None:
            raise ValueError(f"{name} is running already")
        with open(log, "ab") as output:
            # This process has a single thread, which makes preexec_fn safe; and PDEATHSIG is tied to the thread
            # that forks, which for the same reason lives as long as the watchdog does.
            child = subprocess.Popen(
                argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=self.die_with_me
            )
        self.children[name] = child
        return {"pid": child.pid}

    def signal(self, name: str, number: int) -> dict[str, Any]:
        self.children[name].send_signal(number)
        return {}

    def poll(self) -> dict[str, Any]:
        return {"exits": {name: child.poll() for name, child in self.children.items()}}

    def answer(self, line: bytes) -> dict[str, Any]:
        request = json.loads(line)
        number, do = request.pop("id"), request.pop("do")
        try:
            acts: dict[str, Callable[..., dict[str, Any]]]
            acts = {"start": self.start, "signal": self.signal, "poll": self.poll}
            return {"id": number, **acts[do](**request)}
        except Exception as error:
            return {"id": number, "error": f"{type(error).__name__}: {error}"}

    def end(self) -> None:
        for child in self.children.values():
            child.kill()
        for child in self.children.values():
            child.wait()


def requests(parent: int) -> Iterator[bytes]:
    """Lines of stdin, until it ends or the parent is another process than at the start."""
    waiting = b""
    while os.getppid() == parent:
        # The timeout is for a parent that forked: its fork holds our stdin open after the parent is gone.
        if not select.select([0], [], [], 1.0)[0]:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, waiting = (waiting + chunk).split(b"\n")
        yield from lines


def make_folder(setup: dict[str, str | None]) -> str:
    folder = setup["folder"]
    if folder is None:
        return tempfile.mkdtemp(prefix=str(setup["prefix"]), dir=setup["within"])
    os.makedirs(folder, exist_ok=True)
    return folder


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    setup = json.loads(sys.argv[1])
    watchdog = Watchdog()
    folder = None
    # A handler, not SIG_IGN: what is ignored here would stay ignored in the JVMs.
    for number in ENDING:
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        # The watchdog makes the folder, so that there is no moment at which it exists and nobody would remove it.
        folder = make_folder(setup)
        say({"id": 0, "folder": folder})
        for line in requests(setup["parent"]):
            say(watchdog.answer(line))
    except BrokenPipeError:
        pass
    except OSError as error:
        say({"id": 0, "error": f"cannot make the sandbox's folder: {error}"})
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        watchdog.end()
        if folder is not None and setup["remove"]:
            shutil.rmtree(folder, ignore_errors=True)
        # The parent may be gone, and the interpreter would complain about unwritten output on its way out.
        os._exit(0)


if __name__ == "__main__":
    main()
