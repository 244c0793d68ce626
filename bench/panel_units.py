"""Numbers as Grafana writes them, by the units that our dashboards use, and the steps of an axis."""

import math
from collections.abc import Iterator

_THOUSANDS = ("", "K", "M", "B", "T")
# From which value on a unit has which name.
_SECONDS = ((1e-6, " µs"), (1e-3, " ms"), (1.0, " s"), (60.0, " min"), (3600.0, " h"), (86400.0, " d"))
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "short": tuple((1000.0**at, name) for at, name in enumerate(("", " K", " M", " B", " T"))),
    "cps": tuple((1000.0**at, f"{name} c/s") for at, name in enumerate(_THOUSANDS)),
    "reqps": tuple((1000.0**at, f"{name} req/s") for at, name in enumerate(_THOUSANDS)),
    "bytes": tuple((1024.0**at, name) for at, name in enumerate((" B", " KiB", " MiB", " GiB", " TiB"))),
    "Bps": tuple((1000.0**at, name) for at, name in enumerate((" B/s", " kB/s", " MB/s", " GB/s", " TB/s"))),
    "s": _SECONDS,
    "ms": tuple((1000.0 * start, name) for start, name in _SECONDS),
    "percentunit": ((0.01, "%"),),
}
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)  # seconds


def written(value: float, unit: str, step: float = 0.0) -> tuple[str, str]:
    """Number and unit apart. With three digits, or with as many as tell it from the next tick of an axis."""
    size, name = _scale(abs(value), unit)
    scaled = value / size
    digits = _digits(step / size) if step else max(0, 2 - _magnitude(scaled))
    text = f"{scaled:,.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text), name


def in_one(value: float, unit: str, step: float = 0.0) -> str:
    return "".join(written(value, unit, step))


def ticks(most: float, unit: str, count: int = 4) -> list[float]:
    """From 0 to beyond the greatest value."""
    least = 1.0 if unit == "short" else 0.0
    size, _name = _scale(most or 1.0, unit)
    step = next(step for step in _steps(size, unit) if step >= least and step * count >= most)
    return [step * at for at in range(max(1, math.ceil(most / step - 1e-9)) + 1)]


def moments(start: float, end: float, count: int = 6) -> list[int]:
    """Round times between two, in seconds."""
    step = next((step for step in _CLOCK if step * count >= end - start), _CLOCK[-1])
    return list(range(math.ceil(start / step) * step, math.floor(end) + 1, step))


def _scale(value: float, unit: str) -> tuple[float, str]:
    steps = _SCALES[unit]
    if not value:
        return next((step for step in steps if step[0] == 1.0), steps[0])
    return next((step for step in reversed(steps) if value >= step[0] * 0.9995), steps[0])


def _steps(size: float, unit: str) -> Iterator[float]:
    """Ever greater ones, round in the unit that `size` is the size of."""
    if unit == "s" and size >= 60.0:
        yield from map(float, _CLOCK)
        size = 86400.0
    for power in range(-6, 16):
        for factor in (1, 2, 5):
            yield size * factor * 10.0**power


def _magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 2


def _digits(step: float) -> int:
    """After the point, for multiples of this to differ."""
    return next((digits for digits in range(7) if abs(round(step, digits) - step) < step / 100), 6)
