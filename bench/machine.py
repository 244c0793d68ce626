"""Hardware and software of a benchmark, for the report; without the name of the machine."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil
from clusters import HEAP_MB
from tools import MM2_HEAP_MB

from heliograph import __version__
from heliograph.sandbox import DEFAULT_VERSION
from heliograph.sandbox.java import find_java

_HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    in_memory = Path("/dev/shm").is_dir()
    return {
        "CPU": _cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
        "Java": find_java().version,
        "Kafka": f"{DEFAULT_VERSION}, brokers and MirrorMaker 2",
        "Spark": version("pyspark"),
        "Heliograph": f"{__version__}, commit {_commit()}",
        "brokers": f"two clusters of one broker, heap {HEAP_MB} MB, data in {'memory' if in_memory else 'files'}",
        "MirrorMaker 2": f"dedicated mode, heap {MM2_HEAP_MB} MB, log level WARN but for the clients' settings",
    }


def _cpu_model() -> str:
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1].strip() if match else platform.processor() or platform.machine()


def _commit() -> str:
    commit = _git("rev-parse", "--short", "HEAD")
    if commit is None:
        return "unknown"
    changed = _git("--no-optional-locks", "status", "--porcelain", "--", "../src")
    return f"{commit} with local changes" if changed else commit


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=_HERE, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
