"""Spreads of several partitions are merged by the number of their values."""

from heliograph.metrics.totals import totals_by
from heliograph.model.partitions import MirrorPartition
from heliograph.service.measures import Measure
from heliograph.service.partition_stats import PartitionStats
from heliograph.service.window import Spread


def test_the_mean_of_a_topic_is_that_of_all_its_values() -> None:
    measures = []
    for number, ages in enumerate([[10.0] * 8, [100.0], [1000.0], []]):
        stats = PartitionStats()
        for age in ages:
            stats.ages.note(age)
        measures.append(Measure(MirrorPartition("t", "A.t", number), "copying", None, stats))
    for order in (measures, measures[::-1]):
        merged = totals_by(lambda measure: measure.partition.topic, order)["t"].ages
        assert merged == Spread((8 * 10 + 100 + 1000) / 10, 10, 1000)
        assert merged is not None
        assert merged.count == 10
