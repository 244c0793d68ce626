"""The pictures of the dashboards: how they are drawn, and that the docs show each of them."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from panel_lines import Span
from panel_units import in_one, moments, ticks
from panels import svg

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted((ROOT / "deploy" / "monitoring" / "grafana" / "dashboards").glob("*.json"))
_SPAN = Span(1_000_000.0, 1_000_060.0, 2.0)


def _answer(_expression: str) -> list[dict[str, Any]]:
    """Two series, one of which has holes; their labels need care."""
    times = [_SPAN.start + 2 * at for at in range(30)]
    return [
        {"metric": {"flow": "A->B", "topic": "a<b"}, "values": [[time, str(time % 7)] for time in times]},
        {"metric": {"flow": "A->C"}, "values": [[time, "NaN" if time % 20 == 0 else "3e6"] for time in times]},
    ]


def _texts(drawn: str) -> list[str]:
    return [
        "".join(element.itertext())
        for element in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")
    ]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_every_panel_is_drawn(file: Path) -> None:
    dashboard = json.loads(file.read_text())
    titles = {panel["title"] for panel in dashboard["panels"]}
    asked: list[str] = []

    def answer(expression: str) -> list[dict[str, Any]]:
        asked.append(expression)
        return _answer(expression)

    full = _texts(svg(dashboard, answer, _SPAN))
    assert titles <= set(full)
    assert "No data" not in full
    assert len(asked) == sum(len(panel["targets"]) for panel in dashboard["panels"])
    assert not [query for query in asked if "$" in query]
    empty = _texts(svg(dashboard, lambda _expression: [], _SPAN))
    assert titles <= set(empty)
    assert "No data" in empty


def test_a_kind_of_panel_that_cannot_be_drawn_is_told() -> None:
    dashboard = json.loads(DASHBOARDS[0].read_text())
    dashboard["panels"][0]["type"] = "piechart"
    with pytest.raises(ValueError, match="a panel of type piechart cannot be drawn"):
        svg(dashboard, _answer, _SPAN)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "short", "0"),
        (7, "short", "7"),
        (149_322, "short", "149 K"),
        (1_234, "cps", "1.23K c/s"),
        (1_590_000, "Bps", "1.59 MB/s"),
        (1_572_864, "bytes", "1.5 MiB"),
        (0, "s", "0 s"),
        (0.25, "s", "250 ms"),
        (90, "s", "1.5 min"),
        (230, "ms", "230 ms"),
        (0.123, "percentunit", "12.3%"),
    ],
)
def test_numbers_with_units(value: float, unit: str, text: str) -> None:
    assert in_one(value, unit) == text


def test_axes_have_round_ticks() -> None:
    assert ticks(0, "short") == [0, 1]
    assert ticks(7, "short") == [0, 2, 4, 6, 8]
    assert ticks(3 * 1024**2, "bytes") == [0, 1024**2, 2 * 1024**2, 3 * 1024**2]
    assert ticks(200, "s") == [0, 60, 120, 180, 240]
    assert [in_one(value, "cps", 500) for value in ticks(2000, "cps")] == [
        "0 c/s",
        "500 c/s",
        "1K c/s",
        "1.5K c/s",
        "2K c/s",
    ]
    assert moments(1_000_000, 1_000_060) == [*range(1_000_000, 1_000_061, 10)]


def test_the_docs_show_every_picture() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "deploy" / "monitoring" / "README.md"]
    shown = {
        (page.parent / picture).resolve()
        for page in pages
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+\.svg)\)", page.read_text())
    }
    assert [file for file in shown if not file.exists()] == []
    assert {*(ROOT / "docs" / "pictures").glob("*.svg")} <= shown
