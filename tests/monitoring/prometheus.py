"""Prometheus itself, with our rules: looks every second and waits for nothing."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from heliograph.sandbox.ports import free_ports
from monitoring.tools import tool

RULES = Path(__file__).parents[2] / "deploy" / "monitoring" / "prometheus" / "heliograph-rules.yml"


def rules(kind: str) -> list[dict[str, Any]]:
    """Those that are an `alert`, or a `record`."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def query(self, expression: str) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self._url}/query?{urlencode({'query': expression})}", timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found

    def firing(self) -> set[str]:
        return {one["metric"]["alertname"] for one in self.query('ALERTS{alertstate="firing"}')}

    def up(self) -> bool:
        try:
            return bool(self.query('up{job="heliograph"} == 1'))
        except OSError:
            return False


@contextmanager
def looking_at(heliograph: int, folder: Path, other: Mapping[str, str] | None = None) -> Iterator[Prometheus]:
    """At the port of a Heliograph that need not be there yet. `other`: what is written otherwise in the rules."""
    (port,) = free_ports(1)
    text = re.sub(r"for: \d+m", "for: 0s", RULES.read_text())
    for ours, theirs in (other or {}).items():
        assert text.count(ours) == 1, ours
        text = text.replace(ours, theirs)
    (folder / "rules.yml").write_text(text)
    config = yaml.safe_load((RULES.parent / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = ["rules.yml"]
    del config["alerting"]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{heliograph}"]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with (folder / "log").open("wb") as log:
        command = [
            tool("prometheus"),
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(timeout=15)
