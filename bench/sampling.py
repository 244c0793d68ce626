"""Samples of the whole machine while a tool copies, by Linux's `perf`.

It samples from before the tool starts until the copy is complete; what was sampled outside of the copy is left out
afterwards. The event is the kernel's timer: virtual machines often have no counters of the processor. Call stacks are
not recorded, they would cost more than the rest.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from stage import Run, Stage
from time_kinds import FIELDS, Owner, Process, Program, Sample, parse
from tools import Kind, Tool

from heliograph.sandbox.java import find_java

# Not a divisor of what timers usually run at. A copy may take half a second only: then 997 per core are 1,000 samples.
RATE = 997
MISSING = "there is no `perf` (Debian: apt-get install linux-perf)"

_NAME = "perf"
_BEGUN_WITHIN = 20.0
_END_WITHIN = 60.0
_LEASE_PARENT = "heliograph.engine.daemon_ahead"


class NotSampled(Exception):
    """The machine cannot be sampled; the reason in one line."""


def program() -> str | None:
    """The path of `perf`, or None. Debian and Ubuntu have one for each version of the kernel, too."""
    versions = sorted(str(path) for path in Path("/usr/bin").glob("perf_*"))
    return shutil.which("perf") or (versions[-1] if versions else None)


def check() -> None:
    """Raises NotSampled if the machine cannot be sampled."""
    perf = program()
    if perf is None:
        raise NotSampled(MISSING)
    _run([*_command(perf, Path(os.devnull)), "--", "true"])


class Recording:
    """Samples that are being taken; after `finish`, the samples and the processes that took part."""

    def __init__(self, stage: Stage, perf: str, file: Path) -> None:
        self._stage = stage
        self._perf = perf
        self._file = file
        self.processes: dict[int, Process] = {}
        self.samples: list[Sample] = []

    def finish(self, tool: Tool, run: Run, begin: float, end: float) -> None:
        """Ends the sampling, and reads what was sampled in this time, while all processes are still there."""
        stop(self._stage)
        self.processes = processes_of(self._stage, tool, run)
        maps = list(_name_java_code(self.processes))
        try:
            command = [self._perf, "script", "--input", str(self._file), "--fields", FIELDS, "--no-inline"]
            text = _run([*command, "--time", f"{begin:.6f},{end:.6f}"])
        finally:
            for path in maps:
                path.unlink(missing_ok=True)
        self.samples = list(parse(text.splitlines()))


@contextmanager
def recording(stage: Stage) -> Iterator[Recording]:
    """Samples are taken as long as the block lasts, or until `finish`."""
    perf = program()
    if perf is None:
        raise NotSampled(MISSING)
    file = stage.processes.folder / "perf.data"
    file.unlink(missing_ok=True)
    stage.processes.start(_NAME, _command(perf, file), cwd=file.parent, log=file.with_suffix(".log"))
    try:
        _wait_for(file)
        yield Recording(stage, perf, file)
    finally:
        stop(stage)
        file.unlink(missing_ok=True)


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + _BEGUN_WITHIN
    while not file.exists() or not file.stat().st_size:
        if time.monotonic() > deadline:
            raise NotSampled(f"`perf` has not begun within {_BEGUN_WITHIN:g} s")
        time.sleep(0.05)


def stop(stage: Stage) -> None:
    if stage.processes.exits()[_NAME] is None:
        stage.processes.signal(_NAME, signal.SIGINT)
        if stage.processes.wait(_NAME, _END_WITHIN) is None:
            stage.processes.signal(_NAME, signal.SIGKILL)


def processes_of(stage: Stage, tool: Tool, run: Run) -> dict[int, Process]:
    """The processes that take part."""
    found = dict.fromkeys(stage.pair.source.pids().values(), Process(Owner.SOURCE, Program.JAVA))
    found |= dict.fromkeys(stage.pair.target.pids().values(), Process(Owner.TARGET, Program.JAVA))
    found[os.getpid()] = Process(Owner.BENCHMARK, Program.PYTHON)
    if stage.proxy is not None:
        found[stage.proxy.pid] = Process(Owner.BENCHMARK, Program.PYTHON)
    for pid in run.tree.pids():
        with contextlib.suppress(psutil.NoSuchProcess):
            found[pid] = _process_of(tool, psutil.Process(pid))
    return found


def _process_of(tool: Tool, process: psutil.Process) -> Process:
    if tool.kind is Kind.FRANZ_GO:
        return Process(Owner.MIRROR, Program.GO)
    if tool.kind is Kind.MIRROR_MAKER:
        return Process(Owner.MIRROR, Program.JAVA)
    if process.name() == "java":
        return Process(Owner.SPARK, Program.JAVA)
    parent = process.parent()
    is_lease = parent is not None and _LEASE_PARENT in parent.cmdline()
    return Process(Owner.MIRROR if is_lease else Owner.DRIVER, Program.PYTHON)


def _command(perf: str, file: Path) -> list[str]:
    """Times are those of time.monotonic()."""
    clocks = ["--event", "cpu-clock", "--freq", str(RATE), "--clockid", "CLOCK_MONOTONIC"]
    return [perf, "record", "--all-cpus", *clocks, "--output", str(file)]


def _name_java_code(processes: dict[int, Process]) -> Iterator[Path]:
    """Lets every JVM write down where the code is that it has compiled, in the file in which `perf` looks for it."""
    jcmd = Path(find_java().executable).resolve().parent / "jcmd"
    for pid in [pid for pid, process in processes.items() if process.program is Program.JAVA]:
        with contextlib.suppress(NotSampled):  # without a JDK, interpreted code counts as compiled
            _run([str(jcmd), str(pid), "Compiler.perfmap"])
            yield Path(f"/tmp/perf-{pid}.map")


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_END_WITHIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotSampled(f"{Path(command[0]).name}: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise NotSampled(f"{Path(command[0]).name} {command[1]} ends with {done.returncode}: {said[-1].strip()}")
    return done.stdout
