"""Panels of lines over two logarithmic axes as SVG, one below the other. Colours follow the reader's light or dark
setting."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from plot import style

_WIDTH = 820
_LEFT, _RIGHT = 80, 20
_TITLE, _AXIS, _LEGEND_ROW = 44, 60, 20
_HEIGHT = 240  # of the room for lines
_SAMPLE = 34

# In light and in dark.
_COLOURS = {
    "heliograph": ("#d97706", "#f59e0b"),
    "franz-go": ("#4d7a55", "#8fb996"),
    "idle": ("#3f68a8", "#7a9ccf"),
}
_MORE = """\
.line { fill: none; stroke: currentColor; stroke-width: 2 } .dashed { stroke-dasharray: 6 4 }
.point { fill: currentColor } .grid { stroke: #8c959f; stroke-opacity: 0.3 }"""


@dataclass(frozen=True)
class Line:
    """`colour` is one of this module's. Values that are not above 0 cannot be drawn, and are left out."""

    colour: str
    label: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False

    @property
    def drawn(self) -> list[tuple[float, float]]:
        return [(x, y) for x, y in self.points if x > 0 and y > 0]


@dataclass(frozen=True)
class Panel:
    """`unit` is written after the numbers of the x axis."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    unit: str = ""


@dataclass(frozen=True)
class Scale:
    """Where values are between two places."""

    least: float
    most: float
    start: float
    end: float

    def at(self, value: float) -> float:
        part = math.log10(value / self.least) / math.log10(self.most / self.least)
        return self.start + part * (self.end - self.start)


def svg(panels: Sequence[Panel], label: str) -> str:
    """The whole picture."""
    drawn: list[str] = []
    y = 10.0
    for panel in panels:
        drawn += _panel(panel, y)
        y += _TITLE + _HEIGHT + _AXIS + _LEGEND_ROW * len(panel.lines)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 10:.0f}" role="img" '
            f'aria-label="{escape(label)}">',
            f"<style>{style(_COLOURS, 'color', _MORE)}</style>",
            *drawn,
            "</svg>",
            "",
        ]
    )


def decades(values: Sequence[float]) -> tuple[float, float]:
    """The powers of ten around the values, which are not the same."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**first, 10.0 ** max(last, first + 1)


def ticks(least: float, most: float) -> list[float]:
    """The powers of ten from one to the other."""
    first, last = round(math.log10(least)), round(math.log10(most))
    return [10.0**power for power in range(first, last + 1)]


def short(value: float, unit: str = "") -> str:
    """1 k instead of 1000, and 1 KB with a unit."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "K" if unit else "k")):
        if value >= size:
            return f"{value / size:g} {prefix}{unit}"
    return f"{value:g} {unit}".rstrip()


def _panel(panel: Panel, top: float) -> Iterator[str]:
    yield f'<text class="title" x="10" y="{top + 22:.1f}">{escape(panel.title)}</text>'
    places = [point for line in panel.lines for point in line.drawn]
    if not places:
        yield f'<text class="failed" x="{_LEFT}" y="{top + _TITLE + 20:.1f}">failed</text>'
        return
    upper, lower = top + _TITLE, top + _TITLE + _HEIGHT
    x_scale = Scale(*decades([x for x, _ in places]), _LEFT, _WIDTH - _RIGHT)
    y_scale = Scale(*decades([y for _, y in places]), lower, upper)
    yield from _axes(panel, x_scale, y_scale)
    for line in panel.lines:
        yield from _line(line, x_scale, y_scale)
    for row, line in enumerate(panel.lines):
        yield _legend(line, lower + _AXIS + row * _LEGEND_ROW)


def _axes(panel: Panel, x_scale: Scale, y_scale: Scale) -> Iterator[str]:
    lower, upper, right = y_scale.start, y_scale.end, x_scale.end
    for value in ticks(x_scale.least, x_scale.most):
        x = x_scale.at(value)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{upper:.1f}" y2="{lower:.1f}"/>'
        yield f'<text x="{x:.1f}" y="{lower + 18:.1f}" text-anchor="middle">{short(value, panel.unit)}</text>'
    for value in ticks(y_scale.least, y_scale.most):
        y = y_scale.at(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
    yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="{upper:.1f}" y2="{lower:.1f}"/>'
    yield f'<line class="axis" x1="{_LEFT}" x2="{right:.1f}" y1="{lower:.1f}" y2="{lower:.1f}"/>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle:.1f}" y="{lower + 38:.1f}" text-anchor="middle">{escape(panel.x_title)}</text>'
    turned = f'transform="translate(22 {(lower + upper) / 2:.1f}) rotate(-90)"'
    yield f'<text {turned} text-anchor="middle">{escape(panel.y_title)}</text>'


def _line(line: Line, x_scale: Scale, y_scale: Scale) -> Iterator[str]:
    if not line.drawn:
        return
    path = "M" + "L".join(f"{x_scale.at(x):.1f} {y_scale.at(y):.1f}" for x, y in line.drawn)
    yield f'<g class="{line.colour}"><path class="line{" dashed" if line.dashed else ""}" d="{path}"/>'
    for x, y in line.drawn:
        at = f'cx="{x_scale.at(x):.1f}" cy="{y_scale.at(y):.1f}"'
        yield f'<circle class="point" {at} r="3.5"><title>{escape(f"{line.label}: {y:.3g}")}</title></circle>'
    yield "</g>"


def _legend(line: Line, y: float) -> str:
    dashed = " dashed" if line.dashed else ""
    sample = f'<path class="line{dashed}" d="M{_LEFT} {y:.1f}h{_SAMPLE}"/>'
    missing = "" if line.drawn else " (no figures)"
    text = f'<text x="{_LEFT + _SAMPLE + 8}" y="{y + 4:.1f}">{escape(line.label + missing)}</text>'
    return f'<g class="{line.colour}">{sample}</g>{text}'
