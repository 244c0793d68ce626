"""Samples, collected by metric as prometheus-client needs them."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heliograph.metrics.definitions import COUNTER, Metric

Family = CounterMetricFamily | GaugeMetricFamily


class Sheet:
    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def put(self, metric: Metric, value: float, *labels: str) -> None:
        """`labels` are values in the order of the metric's labels."""
        family = self._families.get(metric.name)
        if family is None:
            kind = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
            family = self._families[metric.name] = kind(metric.name, metric.meaning, labels=metric.labels)
        family.add_metric(labels, value)

    def families(self) -> Iterable[Family]:
        return self._families.values()
