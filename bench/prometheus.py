"""A real Prometheus, from the PATH or from Debian's package."""

import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from heliograph.sandbox.jars import cache_directory
from heliograph.sandbox.ports import free_ports

CONFIG = Path(__file__).parents[1] / "deploy" / "monitoring" / "prometheus" / "prometheus.yml"
_CACHE = cache_directory() / "prometheus"


def find(name: str) -> str:
    """The path of `prometheus` or `promtool`; empty if there is none."""
    return shutil.which(name) or _from_debian(name)


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self._ask("query", {"query": expression})

    def range(self, expression: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        return self._ask("query_range", {"query": expression, "start": start, "end": end, "step": step})

    def firing(self) -> set[str]:
        return {alert["metric"]["alertname"] for alert in self.query('ALERTS{alertstate="firing"}')}

    def up(self) -> bool:
        """Whether it has seen Heliograph."""
        try:
            return bool(self.query('up{job="heliograph"} == 1'))
        except OSError:
            return False

    def _ask(self, call: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self._url}/{call}?{urlencode(parameters)}", timeout=30) as answer:
            series: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return series


@contextmanager
def scraping(program: str, target: str, folder: Path, rules: str, seconds: int = 1) -> Iterator[Prometheus]:
    """A Prometheus with a short scrape interval and no alert receiver; otherwise with our own configuration."""
    (port,) = free_ports(1)
    (folder / "rules.yml").write_text(rules)
    config = yaml.safe_load(CONFIG.read_text())
    config["global"] = {"scrape_interval": f"{seconds}s", "evaluation_interval": f"{seconds}s"}
    config["rule_files"] = ["rules.yml"]
    del config["alerting"]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with (folder / "log").open("wb") as log:
        command = [
            program,
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(timeout=60)


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
