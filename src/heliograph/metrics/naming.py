"""What `/metrics?names=` chooses: the names of Kafka's metrics, as different exporters give them.

Each scheme repeats the rules of one exporter. Heliograph's own metrics have the same names in all of them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from heliograph.metrics.definitions import MBean, Metric
from heliograph.metrics.mbeans import (
    MIRROR_CHECKPOINT,
    MIRROR_SOURCE,
    SOURCE_TASK,
    STATUS,
    TASK,
    TASK_ERROR,
    WORKER,
    WORKER_CONNECTOR,
)

_UNQUOTED = re.compile(r"[\w\-%. \t]*", re.ASCII)  # Kafka quotes every other value of a key in an MBean's name


class Names(StrEnum):
    HELIOGRAPH = "heliograph"
    STRIMZI = "strimzi"
    STRIMZI_REPORTER = "strimzi-reporter"
    JMX_EXPORTER = "jmx-exporter"
    CONNECT = "connect"


@dataclass(frozen=True, slots=True)
class Scheme:
    """`name` is given a metric and the class of the connector that it is about; None if the exporter leaves it out.

    `dashed` is how label names replace the dash of `client-id`. With `quotes`, values of labels are as JMX has them:
    in quotes if they contain more than letters, digits, dots and dashes. With `nan`, a mean or maximum without a value
    in the last minute is NaN, as Kafka has it; otherwise it is absent.
    """

    about: str
    name: Callable[[Metric, str], str | None]
    dashed: str = ""
    quotes: bool = False
    nan: bool = True

    def labels(self, metric: Metric) -> tuple[str, ...]:
        if metric.mbean is None:
            return metric.labels
        text = metric.labels[len(metric.mbean.keys) :]
        return *(key.replace("-", self.dashed) for key in metric.mbean.keys), *text

    def value(self, label: str) -> str:
        if not self.quotes or _UNQUOTED.fullmatch(label):
            return label
        return '"' + re.sub(r'([\\"*?])', r"\\\1", label).replace("\n", "\\n") + '"'


def _strimzi(metric: Metric, _connector_class: str) -> str:
    return metric.name


def _jmx_exporter(metric: Metric, _connector_class: str) -> str | None:
    """Domain, type, attribute. The exporter leaves out what is no number."""
    return None if metric.attribute == STATUS else _full_name(metric)


def _strimzi_reporter(metric: Metric, _connector_class: str) -> str:
    """The Prometheus client of the reporter reserves the suffixes `_total` and `_info`."""
    return f"{_full_name(metric)}_info" if metric.attribute == STATUS else _full_name(metric).removesuffix("_total")


def _full_name(metric: Metric) -> str:
    mbean = metric.mbean
    assert mbean is not None
    return re.sub(r"[.-]", "_", f"{mbean.domain}_{mbean.type}_{metric.attribute}".lower())


_TASK_COUNTS = ("destroyed", "failed", "paused", "running", "total", "unassigned")
# Per MBean: the name, and the attributes that the rules list.
_CONNECT: dict[MBean, tuple[str, tuple[str, ...]]] = {
    WORKER: ("kafka_connect_connect_worker_metrics_{attribute}", ("connector-count", "task-count")),
    WORKER_CONNECTOR: (
        "connect_worker_metrics_{connector}_{attribute}",
        tuple(f"connector-{state}-task-count" for state in _TASK_COUNTS),
    ),
    TASK: (
        "connect_connector_task_metrics_{connector}_{attribute}",
        (
            *("batch-size-avg", "batch-size-max", "offset-commit-avg-time-ms", "offset-commit-max-time-ms"),
            *("offset-commit-failure-percentage", "offset-commit-success-percentage", "running-ratio"),
        ),
    ),
    SOURCE_TASK: (
        "connect_source_task_metrics_{connector}_{attribute}",
        ("source-record-active-count", "source-record-poll-total", "source-record-write-total"),
    ),
    TASK_ERROR: (
        "connect_task_error_metrics_{connector}_{attribute}",
        ("total-record-errors", "total-record-failures", "total-records-skipped", "total-retries"),
    ),
    MIRROR_CHECKPOINT: ("connect_mirror_mirrorcheckpointconnector_{attribute}", ("checkpoint-latency-ms",)),
    MIRROR_SOURCE: (
        "connect_mirror_mirrorsourceconnector_{attribute}",
        ("byte-rate", "byte-count", "record-age-ms", "record-rate", "record-count", "replication-latency-ms"),
    ),
}


def _connect(metric: Metric, connector_class: str) -> str | None:
    name, attributes = _CONNECT.get(metric.mbean, ("", ())) if metric.mbean is not None else ("", ())
    if metric.attribute not in attributes:
        return None
    return name.format(connector=connector_class.lower(), attribute=metric.attribute).replace("-", "_")


HELIOGRAPH = Scheme("The default: Strimzi's names, values without JMX's quotes, no NaN.", _strimzi, nan=False)
SCHEMES = {
    Names.HELIOGRAPH: HELIOGRAPH,
    Names.STRIMZI: Scheme(
        "The JMX exporter with the rules of Strimzi's `kafka-mirror-maker-2-metrics.yaml` (`type: "
        'jmxPrometheusExporter`): `kafka_producer_batch_size_avg{clientid="\\"connector-producer-…\\""}`.',
        _strimzi,
        quotes=True,
    ),
    Names.STRIMZI_REPORTER: Scheme(
        "Strimzi's Metrics Reporter (`type: strimziMetricsReporter`): "
        '`kafka_producer_producer_metrics_batch_size_avg{client_id="connector-producer-…"}`.',
        _strimzi_reporter,
        dashed="_",
    ),
    Names.JMX_EXPORTER: Scheme(
        "The JMX exporter without rules, with `lowercaseOutputName: true`. As `strimzi-reporter`, but names keep the "
        "`_total` of their attribute, the status is left out, and values have quotes: "
        '`kafka_producer_producer_metrics_batch_size_avg{client_id="\\"connector-producer-…\\""}`.',
        _jmx_exporter,
        dashed="_",
        quotes=True,
    ),
    Names.CONNECT: Scheme(
        "The JMX exporter with rules whose names begin with `connect_` and contain the connector: "
        "`connect_connector_task_metrics_mirrorsourceconnector_running_ratio`. The connector's class stands for its "
        "name (`*` below), as in MM2's dedicated mode; the label `connector` has the name.",
        _connect,
        dashed="_",
        quotes=True,
    ),
}
