"""A dashboard of Grafana as one SVG, for the docs: laid out and labelled by its JSON, with what Prometheus answers.

Not drawn by Grafana, but close to how it looks there. It knows the kinds of panels, units and options that
`deploy/monitoring/dashboards.py` makes, and no others.
"""

import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from panel_lines import Box, Look, Series, Span, lines, sparkline
from panel_units import written

WIDTH = 1200
_COLUMNS, _ROW, _GAP, _HEAD = 24, 31, 8, 84
_COLOURS = {"green": "#73bf69", "red": "#f2495c"}
_STYLE = """
text { font: 13px Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; fill: #ccccdc }
.small { font-size: 11.5px; fill: #b4b5c3 } .head { font-size: 11.5px; fill: #6e9fff }
.title { font-weight: 500 } .name { font-size: 17px; font-weight: 500 } .faint { fill: #8e8f9c }
.end { text-anchor: end } .middle { text-anchor: middle }
.page { fill: #111217 } .panel { fill: #181b1f; stroke: #2a2d33 } .grid { stroke: #26292f; fill: none }
.chip { fill: #111217; stroke: #3b3e46 } .label { fill: #22252b; stroke: #3b3e46 }
.number { font-weight: 500; text-anchor: middle }
"""

# What Prometheus answers to an expression over the time that is drawn: `result` of a range query.
Ask = Callable[[str], list[dict[str, Any]]]


def svg(dashboard: dict[str, Any], ask: Ask, span: Span) -> str:
    """The whole picture."""
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
    height = _HEAD + bottom * _ROW + _GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'aria-label="{escape(dashboard["title"])}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}"/>',
            *_header(dashboard, span),
            *(line for panel in dashboard["panels"] for line in _panel(panel, _series(panel, dashboard, ask), span)),
            "</svg>",
            "",
        ]
    )


def _series(panel: dict[str, Any], dashboard: dict[str, Any], ask: Ask) -> list[Series]:
    series = []
    for target in panel["targets"]:
        for answer in ask(with_everything_selected(target["expr"], dashboard)):
            points = tuple((float(time), float(value)) for time, value in answer["values"] if value != "NaN")
            if points:
                series.append(Series(_named(target["legendFormat"], answer["metric"]), points))
    return sorted(series, key=lambda line: line.name)


def with_everything_selected(expression: str, dashboard: dict[str, Any]) -> str:
    for variable in dashboard["templating"]["list"]:
        if "allValue" in variable:
            expression = expression.replace(f"${variable['name']}", variable["allValue"])
    return expression


def _named(legend: str, labels: dict[str, str]) -> str:
    if legend == "__auto":
        return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), legend)


def _header(dashboard: dict[str, Any], span: Span) -> Iterator[str]:
    yield f'<text class="name" x="14" y="30">{escape(dashboard["title"])}</text>'
    minutes = f"Last {round((span.end - span.start) / 60)} minutes"
    yield f'<rect class="chip" x="{WIDTH - 138}" y="11" width="128" height="28" rx="3"/>'
    yield f'<text class="middle" x="{WIDTH - 74}" y="30">{minutes}</text>'
    x = 10.0
    for variable in dashboard["templating"]["list"]:
        chosen = variable.get("current", {}).get("text", "Prometheus")
        label, value = 18 + 7.4 * len(variable["name"]), 34 + 7.4 * len(chosen)
        yield f'<rect class="label" x="{x:.1f}" y="48" width="{label:.1f}" height="26" rx="3"/>'
        yield f'<text class="title middle" x="{x + label / 2:.1f}" y="66">{escape(variable["name"])}</text>'
        yield f'<rect class="chip" x="{x + label:.1f}" y="48" width="{value:.1f}" height="26" rx="3"/>'
        yield f'<text x="{x + label + 10:.1f}" y="66">{escape(chosen)}</text>'
        arrow = x + label + value - 17
        yield f'<path d="M{arrow:.1f} 59l4 4l4-4" fill="none" stroke="#ccccdc" stroke-width="1.5"/>'
        x += label + value + 12


def _panel(panel: dict[str, Any], series: list[Series], span: Span) -> Iterator[str]:
    place, column = panel["gridPos"], (WIDTH - _GAP) / _COLUMNS
    x, y = _GAP + place["x"] * column, _HEAD + place["y"] * _ROW
    width, height = place["w"] * column - _GAP, place["h"] * _ROW - _GAP
    yield f'<rect class="panel" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3"/>'
    yield f'<text class="title" x="{x + 10:.1f}" y="{y + 21:.1f}">{escape(panel["title"])}</text>'
    inside = Box(x + 8, y + 32, width - 16, height - 38)
    if not series:
        yield from _nothing(inside, panel["fieldConfig"]["defaults"]["noValue"])
    elif panel["type"] == "stat":
        yield from _stat(Box(x, y + 26, width, height - 26), panel, series[0], span)
    elif panel["type"] == "timeseries":
        yield from lines(inside, series, span, _look(panel))
    else:
        raise ValueError(f"a panel of type {panel['type']} cannot be drawn")


def _look(panel: dict[str, Any]) -> Look:
    defaults = panel["fieldConfig"]["defaults"]
    beside = panel["options"]["legend"]["placement"] == "right"
    return Look(defaults["unit"], defaults["custom"]["fillOpacity"] / 100, beside)


def _nothing(box: Box, text: str) -> Iterator[str]:
    x, y = box.x + box.width / 2, box.y + box.height / 2
    yield f'<text class="faint middle" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _stat(box: Box, panel: dict[str, Any], series: Series, span: Span) -> Iterator[str]:
    """The last value, large, in the colour of its threshold, over a line of how it came there."""
    defaults = panel["fieldConfig"]["defaults"]
    if panel["options"]["textMode"] == "name":
        number, unit, colour = series.name, "", _COLOURS["green"]
    else:
        number, unit, colour = _reading(series.last, defaults)
    middle = 0.45
    if panel["options"]["graphMode"] == "area":
        middle = 0.36
        yield from sparkline(
            Box(box.x + 1, box.y + box.height * 0.66, box.width - 2, box.height * 0.34), series, span, colour
        )
    size = min(36.0, (box.width - 24) / (0.6 * (len(number) + 0.6 * len(unit))))
    x, y = box.x + box.width / 2, box.y + box.height * middle + size * 0.3
    small = f'<tspan font-size="{size * 0.6:.0f}" dx="3">{escape(unit.strip())}</tspan>' if unit.strip() else ""
    style = f"font-size:{size:.0f}px;fill:{colour}"
    yield f'<text class="number" style="{style}" x="{x:.1f}" y="{y:.1f}">{escape(number)}{small}</text>'


def _reading(value: float, defaults: dict[str, Any]) -> tuple[str, str, str]:
    """Number, unit and colour: what the value is mapped to, else by the thresholds."""
    for mapping in defaults["mappings"]:
        if option := mapping["options"].get(f"{value:g}"):
            return option["text"], "", _COLOURS[option["color"]]
    steps = defaults["thresholds"]["steps"]
    colour = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
    return *written(value, defaults["unit"]), _COLOURS[colour]
