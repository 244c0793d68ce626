"""MM2's own metrics."""

from collections.abc import Iterable, Mapping

from heliograph.control.checkpoints import GroupTopicPartition
from heliograph.metrics import mbeans as of
from heliograph.metrics.bounds import MOST_GROUPS, Detail
from heliograph.metrics.definitions import Metric
from heliograph.metrics.sheet import Sheet
from heliograph.metrics.totals import Totals, totals_by
from heliograph.model.flow import Flow
from heliograph.service.measures import Measure
from heliograph.service.window import Spread, Window

ALL = "all"


def put_source(sheet: Sheet, flow: Flow, measures: list[Measure], detail: Detail) -> None:
    if detail.mm2_partitions:
        for measure in measures:
            alone = Totals()
            alone.add(measure)
            _put_mirror(sheet, flow, measure.partition.mirror, str(measure.partition.partition), alone)
            _put_lag(sheet, flow, measure.partition.topic, str(measure.partition.partition), alone)
    elif detail.topics:
        for topic, totals in totals_by(lambda measure: measure.partition.topic, measures).items():
            _put_mirror(sheet, flow, flow.mirror_name(topic), ALL, totals)
            _put_lag(sheet, flow, topic, ALL, totals)


def _put_mirror(sheet: Sheet, flow: Flow, mirror: str, partition: str, totals: Totals) -> None:
    labels = flow.source.alias, flow.target.alias, mirror, partition
    sheet.put(of.RECORD_COUNT, totals.records, *labels)
    sheet.put(of.RECORD_RATE, totals.records_per_second, *labels)
    sheet.put(of.BYTE_COUNT, totals.size, *labels)
    sheet.put(of.BYTE_RATE, totals.bytes_per_second, *labels)
    for last in (of.LATENCY, of.AGE):
        sheet.put(last, totals.latency or 0.0, *labels)
    _put_spread(sheet, (of.LATENCY_AVG, of.LATENCY_MAX, of.LATENCY_MIN), totals.ages, labels)
    _put_spread(sheet, (of.AGE_AVG, of.AGE_MAX, of.AGE_MIN), totals.ages, labels)


def _put_lag(sheet: Sheet, flow: Flow, topic: str, partition: str, totals: Totals) -> None:
    client = f"{flow.name}|heliograph|replication-consumer"
    sheet.put(of.RECORDS_LAG, totals.lag, client, topic, partition)


def put_checkpoints(sheet: Sheet, flow: Flow, ages: Mapping[GroupTopicPartition, Window], detail: Detail) -> None:
    """One series per group and partition with a recent checkpoint; per group if those are too many."""
    lately = {key: (spread, window.last) for key, window in ages.items() if (spread := window.spread()) is not None}
    if not detail.mm2_partitions or len(lately) > MOST_GROUPS:
        lately = _by_group(lately)
    for (group, topic, partition), (spread, last) in lately.items():
        number = ALL if partition < 0 else str(partition)
        labels = flow.source.alias, flow.target.alias, group, topic, number
        sheet.put(of.CHECKPOINT_LATENCY, last, *labels)
        _put_spread(sheet, (of.CHECKPOINT_AVG, of.CHECKPOINT_MAX, of.CHECKPOINT_MIN), spread, labels)


def _by_group(
    lately: Mapping[GroupTopicPartition, tuple[Spread, float]],
) -> dict[GroupTopicPartition, tuple[Spread, float]]:
    """The checkpoints of one round are written together and have the same latency."""
    by_group = {(group, ALL, -1): latencies for (group, _topic, _partition), latencies in lately.items()}
    return by_group if len(by_group) <= MOST_GROUPS else {}


def _put_spread(
    sheet: Sheet, metrics: tuple[Metric, Metric, Metric], spread: Spread | None, labels: Iterable[str]
) -> None:
    """Puts mean, maximum and minimum."""
    values = (None, None, None) if spread is None else (spread.mean, spread.most, spread.least)
    for metric, value in zip(metrics, values, strict=True):
        sheet.put(metric, value, *labels)
