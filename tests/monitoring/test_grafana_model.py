"""Grafana's own model reads the dashboards. Grafana silently ignores what the model does not know."""

import json
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import prometheus, stat, timeseries, units
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

DASHBOARDS = sorted((Path(__file__).parents[2] / "deploy/monitoring/grafana/dashboards").glob("*.json"))
_UNITS = {value for value in vars(units).values() if isinstance(value, str)}
_OPTIONS = {"stat": stat.Options, "timeseries": timeseries.Options}
# Grafana writes it itself, and shows it in its list of variables; the model has forgotten it.
_NOT_IN_THE_MODEL = {"definition"}


def _lost(given: Any, kept: Any, place: str = "") -> list[str]:
    """The paths at which a value is not kept unchanged."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [
            path
            for key, value in given.items()
            if key not in _NOT_IN_THE_MODEL
            for path in _lost(value, kept.get(key), f"{place}/{key}")
        ]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [
            path for at, (a, b) in enumerate(zip(given, kept, strict=True)) for path in _lost(a, b, f"{place}/{at}")
        ]
    return [] if given == kept else [f"{place}: {given!r} became {kept!r}"]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_grafana_knows_every_field(file: Path) -> None:
    register_default_plugins()
    given = json.loads(file.read_text())
    read = Dashboard.from_json(given)
    assert _lost(given, json.loads(json.dumps(read, cls=JSONEncoder))) == []
    assert read.panels
    for panel in read.panels:
        assert isinstance(panel, Panel)
        assert isinstance(panel.options, _OPTIONS[panel.type_val]), panel.title
        assert panel.field_config is not None
        assert panel.field_config.defaults.unit in _UNITS, panel.title
        assert panel.targets
        assert all(isinstance(target, prometheus.Dataquery) for target in panel.targets)
