"""`make pictures` draws docs/pictures: `heliograph top`, `heliograph status` and the dashboards, of flows that copy."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from panel_lines import Span
from panels import svg
from prometheus import CONFIG, Prometheus, find, scraping
from rich.console import Console, RenderableType
from rich.text import Text
from scene import heliograph, playing

from heliograph.cli.rest_client import client
from heliograph.cli.top import frame, look_at, remember

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
DASHBOARDS = CONFIG.parents[1] / "grafana" / "dashboards"
WIDTH, HEIGHT = 84, 34
SECONDS, BEHIND = 60, 1000  # how long `top` looks on at least, and how many records are behind when it is drawn
MINUTES = 5  # that the dashboards show
STEP = 5  # seconds
# What was written before the flows began has been copied.
COPYING = "min(heliograph_copied_records_total) > 0 and max(heliograph_lag_seconds) < 10"


def main() -> None:
    program = find("prometheus")
    if not program:
        sys.exit("no prometheus on the path, and Debian's package cannot be fetched")
    rules = (CONFIG.parent / "heliograph-rules.yml").read_text()
    with playing() as scene, tempfile.TemporaryDirectory() as folder:
        with scraping(program, scene.address, Path(folder), rules, STEP) as prometheus:
            rest = f"http://{scene.address}"
            while not (prometheus.up() and prometheus.query(COPYING)):
                time.sleep(1)
            begun = time.monotonic()
            _draw("top", _top(rest))
            _draw("status", _printed("status", "--rest", rest))
            scene.write_to_a_mirror()
            scene.lose_records()
            time.sleep(max(0.0, begun + MINUTES * 60 - time.monotonic()))
            _draw_dashboards(prometheus)


def _top(rest: str) -> RenderableType:
    """After a while, and when something is behind."""
    history: dict[str, deque[float]] = {}
    begun = time.monotonic()
    while True:
        look = look_at(client(rest))
        remember(history, look)
        if time.monotonic() > begun + SECONDS and look.behind and look.behind[0][1]["lag"] > BEHIND:
            return frame(look, history, "http://127.0.0.1:8083", WIDTH, HEIGHT)
        time.sleep(1)


def _printed(*arguments: str) -> Text:
    env = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
    done = subprocess.run(heliograph(*arguments), capture_output=True, text=True, env=env, check=False)
    return Text.from_ansi(done.stdout)


def _draw(name: str, shown: RenderableType) -> None:
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(shown)
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(console.export_svg(title=f"heliograph {name}"))


def _draw_dashboards(prometheus: Prometheus) -> None:
    now = time.time()
    span = Span(now - MINUTES * 60, now, STEP)
    for file in sorted(DASHBOARDS.glob("*.json")):
        drawn = svg(
            json.loads(file.read_text()), lambda asked: prometheus.range(asked, span.start, span.end, STEP), span
        )
        (PICTURES / f"{file.stem.replace('heliograph', 'dashboard')}.svg").write_text(drawn)


if __name__ == "__main__":
    main()
