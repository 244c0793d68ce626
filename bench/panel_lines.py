"""One panel's lines over time, as SVG: axes, areas, and the legend below or beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from panel_units import in_one, moments, ticks

# Grafana's own, in their order.
PALETTE = (
    *("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2"),
    *("#b877d9", "#705da0", "#37872d", "#fade2a", "#447ebc", "#c15c17"),
)
_AXIS, _TIMES, _LEGEND_ROW, _MOST_ROWS, _MORE = 12, 22, 18, 3, 80
_CHAR = 6.3  # the width of one at the size of legends, on the wide side of what fonts have


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[tuple[float, float], ...]  # time and value

    @property
    def last(self) -> float:
        return self.points[-1][1]


@dataclass(frozen=True)
class Span:
    """What the time axis is about, in seconds."""

    start: float
    end: float
    step: float


@dataclass(frozen=True)
class Look:
    unit: str
    fill: float  # opacity of areas
    beside: bool  # the legend, with the last values


class _Plane:
    """Where times and values are within the box that lines are drawn in."""

    def __init__(self, box: Box, span: Span, top: float) -> None:
        self.box, self.span, self._top = box, span, top

    def x(self, time: float) -> float:
        return self.box.x + self.box.width * (time - self.span.start) / (self.span.end - self.span.start)

    def y(self, value: float) -> float:
        return self.box.y + self.box.height * (1 - value / self._top)


def lines(box: Box, series: Sequence[Series], span: Span, look: Look) -> Iterator[str]:
    if look.beside:
        legend, room = _legend_beside(box, series, look.unit)
    else:
        legend, room = _legend_below(box, series)
    steps = ticks(max(value for line in series for _time, value in line.points), look.unit)
    labels = [in_one(value, look.unit, steps[1]) for value in steps]
    left = _AXIS + _CHAR * max(map(len, labels))
    plane = _Plane(Box(room.x + left, room.y + 6, room.width - left - 8, room.height - _TIMES - 6), span, steps[-1])
    yield from _axes(plane, steps, labels)
    for number, line in enumerate(series):
        yield from _curve(plane, line, PALETTE[number % len(PALETTE)], look.fill)
    yield from legend


def _curve(plane: _Plane, series: Series, colour: str, fill: float, width: float = 1.5) -> Iterator[str]:
    bottom = plane.box.y + plane.box.height
    for run in _runs(series.points, plane.span.step):
        path = _path([(plane.x(time), plane.y(value)) for time, value in run])
        if fill:
            area = f"{path}V{bottom:.1f}H{plane.x(run[0][0]):.1f}Z"
            yield f'<path d="{area}" fill="{colour}" fill-opacity="{fill:g}"/>'
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-linejoin="round"/>'


def sparkline(box: Box, series: Series, span: Span, colour: str) -> Iterator[str]:
    top = max(value for _time, value in series.points) or 1.0
    yield from _curve(_Plane(box, span, top * 1.05), series, colour, 0.18, 1.2)


def _fitted(text: str, width: float) -> str:
    """Cut where there is no room for all of it."""
    room = int(width / _CHAR)
    return text if len(text) <= room else f"{text[: max(1, room - 1)].rstrip()}…"


def _axes(plane: _Plane, steps: list[float], labels: list[str]) -> Iterator[str]:
    box = plane.box
    for value, label in zip(steps, labels, strict=True):
        y = plane.y(value)
        yield f'<path class="grid" d="M{box.x:.1f} {y:.1f}h{box.width:.1f}"/>'
        yield f'<text class="small end" x="{box.x - 7:.1f}" y="{y + 4:.1f}">{escape(label)}</text>'
    for time in moments(plane.span.start, plane.span.end, int(box.width / 70)):
        x = plane.x(time)
        clock = datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S")
        yield f'<path class="grid" d="M{x:.1f} {box.y:.1f}v{box.height:.1f}"/>'
        inside = min(x, box.x + box.width - 14)
        yield f'<text class="small middle" x="{inside:.1f}" y="{box.y + box.height + 17:.1f}">{clock}</text>'


def _legend_below(box: Box, series: Sequence[Series]) -> tuple[list[str], Box]:
    """In rows; and the room that is left above them."""
    rows: list[list[tuple[float, int]]] = [[]]
    at, shown = 0.0, 0
    for number, line in enumerate(series):
        width = 34 + _CHAR * len(line.name)
        room = box.width - (_MORE if len(rows) == _MOST_ROWS else 0)
        if rows[-1] and at + width > room:
            if len(rows) == _MOST_ROWS:
                break
            rows, at = [*rows, []], 0.0
        rows[-1].append((at, number))
        at, shown = at + width, shown + 1
    top = box.y + box.height - len(rows) * _LEGEND_ROW
    drawn = [
        _entry(box.x + 6 + x, top + row * _LEGEND_ROW + 12, number, _fitted(series[number].name, box.width - 30))
        for row, entries in enumerate(rows)
        for x, number in entries
    ]
    if shown < len(series):
        drawn.append(_more(box.x + box.width, top + len(rows) * _LEGEND_ROW - 6, len(series) - shown))
    return drawn, Box(box.x, box.y, box.width, top - box.y)


def _legend_beside(box: Box, series: Sequence[Series], unit: str) -> tuple[list[str], Box]:
    """One below the other with their last values, the greatest first; and the room that is left of them."""
    ranked = sorted(range(len(series)), key=lambda number: -series[number].last)
    values = [in_one(line.last, unit) for line in series]
    wide = _CHAR * max(map(len, values))
    width = min(box.width * 0.45, 40 + wide + _CHAR * max(len(line.name) for line in series))
    rows = int(box.height / _LEGEND_ROW) - 1
    left, right = box.x + box.width - width, box.x + box.width - 4
    drawn = [f'<text class="head end" x="{right:.1f}" y="{box.y + 12:.1f}">Last</text>']
    for row, number in enumerate(ranked[:rows], 1):
        y = box.y + row * _LEGEND_ROW + 12
        drawn.append(_entry(left, y, number, _fitted(series[number].name, width - wide - 34)))
        drawn.append(f'<text class="small end" x="{right:.1f}" y="{y:.1f}">{escape(values[number])}</text>')
    if len(ranked) > rows:
        drawn.append(_more(left + 50, box.y + 12, len(ranked) - rows))
    return drawn, Box(box.x, box.y, box.width - width - 10, box.height)


def _entry(x: float, y: float, number: int, name: str) -> str:
    colour = PALETTE[number % len(PALETTE)]
    return (
        f'<rect x="{x:.1f}" y="{y - 6:.1f}" width="14" height="4" rx="2" fill="{colour}"/>'
        f'<text class="small" x="{x + 20:.1f}" y="{y:.1f}">{escape(name)}</text>'
    )


def _more(x: float, y: float, count: int) -> str:
    return f'<text class="head end" x="{x:.1f}" y="{y:.1f}">and {count} more</text>'


def _runs(points: Sequence[tuple[float, float]], step: float) -> Iterator[list[tuple[float, float]]]:
    """Stretches without a hole: where there was no value, there is no line."""
    run: list[tuple[float, float]] = []
    for point in points:
        if run and point[0] - run[-1][0] > step * 1.5:
            yield run
            run = []
        run.append(point)
    if run:
        yield run


def _path(points: list[tuple[float, float]]) -> str:
    """Without the points in the middle of level stretches."""
    kept = [
        point
        for at, point in enumerate(points)
        if at in (0, len(points) - 1) or not points[at - 1][1] == point[1] == points[at + 1][1]
    ]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in kept)
