"""Samples, collected by metric as prometheus-client needs them."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heliograph.metrics.definitions import COUNTER, Metric
from heliograph.metrics.naming import HELIOGRAPH, Scheme

Family = CounterMetricFamily | GaugeMetricFamily

_NAN = float("nan")


class Sheet:
    """`classes` are those of connectors, by name."""

    def __init__(self, scheme: Scheme = HELIOGRAPH, classes: Mapping[str, str] | None = None) -> None:
        self._scheme = scheme
        self._classes = classes or {}
        self._families: dict[str, Family] = {}
        self._known: dict[tuple[str, str], Family | None] = {}  # by metric and class of connector

    def put(self, metric: Metric, value: float | None, *labels: str) -> None:
        """`labels` are values in the order of the metric's labels. `value` is None if there was none lately."""
        if value is None and (metric.mbean is None or not self._scheme.nan):
            return
        connector_class = self._classes.get(labels[0], "") if metric.labels[:1] == ("connector",) else ""
        key = metric.name, connector_class
        if key not in self._known:
            self._known[key] = self._family(metric, connector_class)
        family = self._known[key]
        if family is not None:
            values = labels if metric.mbean is None else tuple(map(self._scheme.value, labels))
            family.add_metric(values, _NAN if value is None else value)

    def _family(self, metric: Metric, connector_class: str) -> Family | None:
        name = metric.name if metric.mbean is None else self._scheme.name(metric, connector_class)
        if name is None:
            return None
        if name not in self._families:
            kind = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
            self._families[name] = kind(name, metric.meaning, labels=self._scheme.labels(metric))
        return self._families[name]

    def families(self) -> Iterable[Family]:
        return self._families.values()
