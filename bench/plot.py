"""A bar chart of records per second as SVG, written by hand: a panel for each workload, a bar for each tool.

Each panel has a scale of its own, as what is hard differs between workloads. Colours follow the reader's light or dark
setting.
"""

from collections.abc import Mapping
from html import escape

from results import BOUND_TITLES, Bound, Results

_WIDTH = 820
_LABELS = 260
_VALUES = 130
_BAR = 18
_GAP = 6
_TITLE = 40

# In light and in dark.
_COLOURS = {
    "heliograph": ("#d97706", "#f59e0b"),
    "heliograph-2": ("#f2b35e", "#b9802c"),
    "franz-go": ("#6b8f71", "#8fb996"),
    "mm2": ("#8aa4c8", "#a8bede"),
    "mm2-tuned": ("#5b7fb5", "#7a9ccf"),
    "mm2-eos": ("#34568b", "#5577ad"),
}


def style(colours: Mapping[str, tuple[str, str]], painted: str, more: str = "") -> str:
    """A style sheet: texts, axes, and a class for each colour, which sets the property `painted`."""
    light, dark = (" ".join(f".{name} {{ {painted}: {pair[at]} }}" for name, pair in colours.items()) for at in (0, 1))
    return f"""
text {{ font: 13px system-ui, sans-serif; fill: #1f2328 }}
.title {{ font-weight: 600 }}
.failed {{ fill: #b42318 }}
.axis {{ stroke: #8c959f }}
{light}
{more}
@media (prefers-color-scheme: dark) {{
  text {{ fill: #e6edf3 }} .failed {{ fill: #ff7b72 }}
  {dark}
}}
"""


_STYLE = style(_COLOURS, "fill", ".limit { fill: none; stroke: #8c959f; stroke-dasharray: 4 3 }")

# What a bar stands for: style, label, records per second or None where all rounds failed.
_Bar = tuple[str, str, float | None]


def svg(results: Results) -> str:
    """The whole picture."""
    panels, y = [], 10
    for source in results.sources:
        bars = _bars(results, source.workload)
        panels.append(_panel(f"{source.workload}. {source.name}", bars, y))
        y += _TITLE + len(bars) * (_BAR + _GAP)
    height = y + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            'aria-label="records per second by workload and tool">',
            f"<style>{_STYLE}</style>",
            *panels,
            "</svg>",
            "",
        ]
    )


def _bars(results: Results, workload: int) -> list[_Bar]:
    bars: list[_Bar] = [
        (key, title, results.median(workload, key, lambda copy: copy.rate))
        for key, title in results.titles.items()
        if results.runs(workload, key)
    ]
    limits = [(bound, results.limit(workload, bound)) for bound in (Bound.PRODUCE_LARGE, Bound.PRODUCE)]
    return [*bars, *(("limit", BOUND_TITLES[bound], rate) for bound, rate in limits if rate)]


def _panel(title: str, bars: list[_Bar], y: int) -> str:
    most = max((rate or 0.0 for _, _, rate in bars), default=0.0) or 1.0
    room = _WIDTH - _LABELS - _VALUES
    lines = [f'<text class="title" x="10" y="{y + 22}">{escape(title)}, records/s</text>']
    for number, (style, label, rate) in enumerate(bars):
        top = y + _TITLE - 6 + number * (_BAR + _GAP)
        text_y = top + _BAR - 5
        lines.append(f'<text x="{_LABELS - 8}" y="{text_y}" text-anchor="end">{escape(label)}</text>')
        width = max(1, round((rate or 0.0) / most * room))
        if rate is None:
            lines.append(f'<text class="failed" x="{_LABELS + 8}" y="{text_y}">failed</text>')
            continue
        lines.append(f'<rect class="{style}" x="{_LABELS}" y="{top}" width="{width}" height="{_BAR}" rx="2"/>')
        lines.append(f'<text x="{_LABELS + width + 8}" y="{text_y}">{rate:,.0f}</text>')
    bottom = y + _TITLE - 6 + len(bars) * (_BAR + _GAP)
    lines.append(f'<line class="axis" x1="{_LABELS}" x2="{_LABELS}" y1="{y + _TITLE - 10}" y2="{bottom}"/>')
    return "\n".join(lines)
