"""Faults of Heliograph's own processes: killed, frozen and thawed, started twice."""

import contextlib
import random
import signal
import time
from collections.abc import Callable

import psutil

from fault_runs.scene import Applied, Fault, NotApplied, Scene, Undo
from fault_runs.supervised import DRIVER, EXECUTOR, JVM, WORKER, Supervised

_APPEARS_WITHIN = 90.0
_COPIES = "records/s"  # in the line that a flow logs every ten seconds


def _any(command: Supervised, role: str, rng: random.Random) -> psutil.Process:
    """One of the processes in this role. After an earlier fault it may take a moment until there is one."""
    deadline = time.monotonic() + _APPEARS_WITHIN
    while not (found := command.processes(role)):
        if time.monotonic() > deadline:
            raise NotApplied(f"Heliograph has no {role} process for {_APPEARS_WITHIN:g} s")
        time.sleep(0.2)
    return rng.choice(found)


def _kill(role: str) -> Callable[[Scene, random.Random], Applied]:
    def apply(scene: Scene, rng: random.Random) -> Applied:
        process = _any(scene.command, role, rng)
        process.kill()
        return Applied(f"{role} {process.pid}")

    return apply


def _freeze(role: str) -> Callable[[Scene, random.Random], Applied]:
    def apply(scene: Scene, rng: random.Random) -> Applied:
        process = _any(scene.command, role, rng)
        process.send_signal(signal.SIGSTOP)

        def thaw() -> None:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)

        return Applied(f"{role} {process.pid}", thaw)

    return apply


def start_second(scene: Scene) -> tuple[Supervised, Undo]:
    """A second deployment of the same file, which has begun to copy; and how it is stopped."""
    second = scene.second()
    second.start()

    def stop() -> None:
        if left := second.stop():
            raise RuntimeError(f"the second deployment left processes behind: {left}")

    try:
        deadline = time.monotonic() + _APPEARS_WITHIN
        while _COPIES not in second.log.read_text(errors="replace") and time.monotonic() < deadline:
            time.sleep(0.5)
    except BaseException:
        stop()
        raise
    return second, stop


def _second_deployment(scene: Scene, _rng: random.Random) -> Applied:
    _second, stop = start_second(scene)
    return Applied("the same file", stop)


def executor_faults(lease_seconds: float) -> list[Fault]:
    """Where executors are processes of their own."""
    long, watched = (lease_seconds * 1.3, lease_seconds * 2.5), lease_seconds * 1.5
    text = "SIGSTOP of an executor's JVM, SIGCONT after its leases have ended"
    return [
        Fault("kill-executor", "SIGKILL of an executor's JVM", _kill(EXECUTOR), watched=watched),
        Fault("freeze-executor-long", text, _freeze(EXECUTOR), long),
    ]


def process_faults(lease_seconds: float) -> list[Fault]:
    short, long, watched = (0.5, lease_seconds * 0.5), (lease_seconds * 1.3, lease_seconds * 2.5), lease_seconds * 1.5
    text = "SIGKILL of `heliograph run`, which is started again after a second"
    faults = [
        Fault("kill-driver", text, _kill(DRIVER), watched=watched),
        Fault("kill-jvm", "SIGKILL of Spark's JVM", _kill(JVM), watched=watched),
        Fault("kill-worker", "SIGKILL of the Python process that a lease runs in", _kill(WORKER), watched=3.0),
    ]
    for role, text in ((DRIVER, "`heliograph run`"), (JVM, "Spark's JVM"), (WORKER, "the process of a lease")):
        before, after = f"SIGSTOP of {text}, SIGCONT before", f"SIGSTOP of {text}, SIGCONT after"
        faults += [
            Fault(f"freeze-{role}", f"{before} its leases end", _freeze(role), short),
            Fault(f"freeze-{role}-long", f"{after} its leases have ended", _freeze(role), long),
        ]
    text = "a second `heliograph run` with the same file, by mistake"
    return [*faults, Fault("second-deployment", text, _second_deployment, (8.0, 15.0))]
