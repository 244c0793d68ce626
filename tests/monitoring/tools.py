"""Prometheus itself, where it can be had: on the path, or as Debian's package."""

import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from heliograph.sandbox.jars import cache_directory

_CACHE = cache_directory() / "prometheus"


def tool(name: str) -> str:
    """`prometheus` or `promtool`; the test is skipped where there is none."""
    found = shutil.which(name) or _from_debian(name)
    if not found:
        pytest.skip(f"no {name} on the path, and Debian's package cannot be fetched")
    return found


@cache
def _from_debian(name: str) -> str:
    if not (_CACHE / "usr" / "bin" / name).exists() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        with tempfile.TemporaryDirectory() as folder:
            with suppress(subprocess.TimeoutExpired, subprocess.CalledProcessError):
                fetch = ["apt-get", "download", "prometheus"]
                subprocess.run(fetch, cwd=folder, capture_output=True, check=True, timeout=60)
                for package in Path(folder).glob("*.deb"):
                    subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
                    _CACHE.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copytree(Path(folder) / "usr" / "bin", _CACHE / "usr" / "bin", dirs_exist_ok=True)
    path = _CACHE / "usr" / "bin" / name
    return str(path) if path.exists() else ""
