"""The metrics of a running flow."""

import math
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fake_clock import FakeClock
from heliograph import __version__
from heliograph.copy.counts import Amount, Counts
from heliograph.copy.signals import Report
from heliograph.copy.work import Copied, Outcome, Progress
from heliograph.metrics import definitions as of
from heliograph.metrics import reference
from heliograph.metrics.bounds import MOST_PARTITIONS, MOST_TOPICS, Detail
from heliograph.metrics.connect import put_tasks
from heliograph.metrics.sheet import Sheet
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Notice, Refusal
from heliograph.service.flow_stats import FlowStats
from heliograph.service.flow_view import Task
from heliograph.service.measures import Measure
from heliograph.service.partition_stats import PartitionStats
from heliograph.service.running_lease import RunningLease
from heliograph.service.window import Spread, Window
from logs import Record, until
from monitoring.conftest import CLIENT, FLOW, GROUP, KAFKAS, KINDS, LOST, STOPPED, WELL, Watched, write_now

ONLY_WHILE_LATE = {of.MARGIN.name, of.TOPIC_MARGIN.name}
SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"


def test_every_metric_is_there_with_its_labels(watched: Watched) -> None:
    known = {metric.name: metric for metric in (*KAFKAS, *of.OF_PROCESS, *of.OF_FLOW, *of.OF_TOPIC)}
    watched.pair.a.commit(GROUP, WELL, 600)  # latencies and sizes of batches are those of the last minute
    write_now(watched.pair.a, WELL, 10)
    until(lambda: known.keys() - ONLY_WHILE_LATE <= watched.metrics().keys())
    values = watched.metrics()
    for name, metric in known.items():
        for labels in values.get(name, {}):
            assert {label for label, _value in labels} == set(metric.labels), name
    others = values.keys() - known.keys()
    assert all(name.startswith(("process_", "python_")) for name in others), others
    assert not any(math.isnan(value) for series in values.values() for value in series.values())


def test_mm2s_metrics_count_what_was_copied(watched: Watched) -> None:
    labels = {"source": "W", "target": "V", "topic": f"W.{WELL}", "partition": "1"}

    def value(name: str) -> float:
        value = watched.value(f"{SOURCE}{name}", **labels)
        assert value is not None, name
        return value

    count = watched.pair.a.bounds(WELL, 1)[1]
    assert count >= 1000
    until(lambda: value("record_count") == count)
    before = value("byte_count")
    assert before > 100 * count
    write_now(watched.pair.a, WELL, 200, partition=1)
    until(lambda: value("record_count") == count + 200)
    assert value("byte_count") > before + 200 * 100
    assert 0 < value("record_rate") <= (count + 200) / 30
    assert value("byte_rate") > value("record_rate") * 100
    assert 0 <= value("replication_latency_ms_min") <= value("replication_latency_ms_avg")
    assert value("replication_latency_ms_avg") <= value("replication_latency_ms_max")
    assert value("record_age_ms_max") == value("replication_latency_ms_max")
    lag = watched.value("kafka_consumer_fetch_manager_records_lag", topic=WELL, partition="1")
    assert lag == 0


def test_connects_metrics_have_tasks_and_their_states(watched: Watched) -> None:
    connector = f"{FLOW}.MirrorSourceConnector"
    until(lambda: watched.value("kafka_connect_worker_connector_failed_task_count", connector=connector) == 1)
    assert watched.value("kafka_connect_worker_connector_total_task_count", connector=connector) == 2
    states = {
        dict(labels)["status"]
        for labels in watched.metrics()["kafka_connect_connector_status"]
        if dict(labels)["connector"] == connector
    }
    assert states == {"failed", "running"}

    def tasks_and_flow_agree() -> bool:
        values = watched.metrics()
        written = values["kafka_connect_source_task_source_record_write_total"]
        return sum(written.values()) == values["heliograph_copied_records_total"][frozenset({("flow", FLOW)})]

    until(tasks_and_flow_agree)
    (failed,) = (
        dict(labels)["task"]
        for labels in watched.metrics()["kafka_connect_connector_status"]
        if {("connector", connector), ("status", "failed")} <= labels
    )
    errors = "kafka_connect_task_error_"
    assert (watched.value(f"{errors}total_errors_logged", connector=connector, task=failed) or 0) >= 1
    assert (watched.value(f"{errors}last_error_timestamp", connector=connector, task=failed) or 0) > 1.7e12
    assert watched.value(f"{errors}total_record_errors", connector=connector, task=failed) == 0  # no record's fault
    assert (watched.value("kafka_connect_worker_rebalance_completed_rebalances_total") or 0) >= 1
    assert (watched.value("kafka_connect_worker_rebalance_time_since_last_rebalance_ms") or 0) > 0


def test_records_that_are_refused_are_counted_once_for_their_task() -> None:
    whole, broken = (MirrorPartition("t", "A.t", partition) for partition in (0, 1))
    stats = FlowStats("A->B", lambda: None)
    stats.retain([whole, broken])
    lease = RunningLease("lease", 0, (whole, broken))
    refusal = Refusal(broken, "too-large", 7, 7, "too large")
    waiting = Refusal(whole, "waiting", 3, 3, "no leader", final=False)
    parked = Notice(whole, "parked", 1, 4, 4, "put aside")
    lost = Notice(whole, "data-loss", 5, 4, 4, "lost")
    report = Report(lease.id, 0, 0, Counts(), {}, (refusal, waiting), (parked, lost))
    assert stats.apply_report(report, lease)
    stats.apply_outcome(Outcome(lease.id, Counts(), {}, (refusal,), (parked, lost, parked)), lease)
    errors = {partition: stats.partition_stats[partition].errors for partition in (whole, broken)}
    assert [(error.refused, error.parked, error.logged) for error in errors.values()] == [(2, 2, 4), (1, 0, 1)]
    sheet = Sheet()
    measures = [Measure(partition, "copying", None, stats) for partition, stats in stats.partition_stats.items()]
    put_tasks(sheet, "A->B", "c", [Task((whole,), running=True), Task((broken,), running=True)], measures)
    values = {family.name: [sample.value for sample in family.samples] for family in sheet.families()}
    assert values["kafka_connect_task_error_total_record_errors"] == [2, 1]
    assert values["kafka_connect_task_error_total_record_failures"] == [2, 1]
    assert values["kafka_connect_task_error_total_records_skipped"] == [2, 0]
    assert values["kafka_connect_task_error_deadletterqueue_produce_requests"] == [2, 0]
    assert values["kafka_connect_task_error_total_errors_logged"] == [4, 1]


def test_what_leases_did_adds_up() -> None:
    stats = FlowStats("A->B", lambda: None)
    lease, counts = RunningLease("lease", 0, ()), Counts()
    counts.append("gzip", "", 10, 1000)
    counts.append("gzip", "", 5, 500)
    counts.append("gzip", "thin", 3, 300)
    counts.throttled["target"] += 1.5
    report = Report.from_record(*Report(lease.id, 0, 0, counts, {}, ()).to_record())
    assert stats.apply_report(report, lease)
    assert stats.counts([lease]) == counts
    stats.apply_report(replace(report, attempt=1), lease)  # what the first attempt did counts, too
    stats.apply_outcome(Outcome(lease.id, Counts(), {}, (), attempt=2), lease)  # without a report
    assert stats.counts([]) == Counts(
        {("gzip", "as-it-is"): Amount(4, 30, 3000), ("gzip", "thin"): Amount(2, 6, 600)},
        {"source": 0.0, "target": 3.0},
    )


def test_batches_are_counted_by_compression_and_by_what_became_of_them(watched: Watched) -> None:
    until(lambda: watched.value("heliograph_topic_copied_records_total", flow=FLOW, topic=KINDS) == 200)
    until(lambda: watched.value("heliograph_codec_batches_total", flow=FLOW, codec="gzip") == 1)
    assert (watched.value("heliograph_codec_bytes_total", flow=FLOW, codec="gzip") or 0) > 100 * 100
    assert watched.value("heliograph_codec_batches_total", flow=FLOW, codec="zstd") == 0
    assert (watched.value("heliograph_encoded_records_total", flow=FLOW, how="thin") or 0) >= 100
    batches = watched.value("heliograph_encoded_batches_total", flow=FLOW, how="thin")
    assert batches
    assert batches * 20 < (watched.value("heliograph_encoded_records_total", flow=FLOW, how="thin") or 0)
    assert watched.value("heliograph_encoded_batches_total", flow=FLOW, how="holes") == 0
    values = watched.metrics()
    of_flow = frozenset({("flow", FLOW)})
    for total, parts in (
        ("heliograph_copied_bytes_total", "heliograph_codec_bytes_total"),
        ("heliograph_copied_bytes_total", "heliograph_encoded_bytes_total"),
        ("heliograph_copied_records_total", "heliograph_encoded_records_total"),
    ):
        assert sum(values[parts].values()) == values[total][of_flow]


def test_a_flow_that_is_held_to_a_quota_comes_late_and_retention_comes_nearer(watched: Watched) -> None:
    source, late, records = watched.pair.a, "watched-late", 3000
    of_topic = {("flow", FLOW), ("topic", late)}
    throttled = watched.value("heliograph_throttled_seconds_total", flow=FLOW, side="source")
    assert throttled is not None

    def source_begins_at() -> float | None:
        """As the margin tells; None if nothing is late."""
        values = watched.metrics()
        margin = values.get("heliograph_topic_retention_margin_records", {}).get(
            frozenset(of_topic | {("partition", "0")})
        )
        if margin is None:
            return None
        assert values["heliograph_retention_margin_records"][frozenset({("flow", FLOW)})] <= margin
        return records - values["heliograph_topic_lag_records"][frozenset(of_topic)] - margin

    old = int(time.time() * 1000) - 3600_000
    source.create(late)
    source.limit(CLIENT, "consumer_byte_rate", 200_000)
    try:
        source.write(late, [Record(0, old, None, os.urandom(1000)) for _ in range(records)])
        until(lambda: (watched.value("heliograph_topic_retention_margin_records", topic=late) or 0) >= 100)
        assert source_begins_at() == 0
        source.delete_before(late, 0, 100)
        until(lambda: source_begins_at() == 100)
        assert (watched.value("heliograph_throttled_seconds_total", flow=FLOW, side="source") or 0) > throttled
    finally:
        source.limit(CLIENT, "consumer_byte_rate", None)
    until(lambda: watched.value("heliograph_topic_copied_records_total", flow=FLOW, topic=late) == records)
    until(lambda: source_begins_at() is None)
    assert watched.value("heliograph_throttled_seconds_total", flow=FLOW, side="target") == 0


def test_our_own_tell_what_goes_wrong(watched: Watched) -> None:
    assert watched.value("heliograph_build_info", version=__version__) == 1
    assert watched.value("heliograph_spark_up") == 1
    assert watched.value("heliograph_flow_state", flow=FLOW, state="running") == 1
    assert watched.value("heliograph_flow_state", flow=FLOW, state="failed") == 0
    assert watched.value("heliograph_topics_failed", flow=FLOW) == 1
    until(lambda: watched.value("heliograph_partitions", flow=FLOW, state="stopped") == 1)
    assert watched.value("heliograph_refusals", flow=FLOW, reason="unknown-origin", final="true") == 1
    assert watched.value("heliograph_topic_partitions_stopped", flow=FLOW, topic=STOPPED) == 1
    losses = watched.value("heliograph_notices_total", flow=FLOW, kind="data-loss")
    assert losses
    assert watched.value("heliograph_notice_records_total", flow=FLOW, kind="data-loss") == 5 * losses
    assert watched.value("heliograph_notices_total", flow=FLOW, kind="foreign-writer") == 0
    copied = "heliograph_topic_copied_records_total"
    until(lambda: (watched.value(copied, flow=FLOW, topic=LOST) or 0) >= 10 + 5 * losses)
    until(lambda: watched.value("heliograph_topic_lag_records", flow=FLOW, topic=LOST) == 0)
    assert watched.value("heliograph_topic_lag_seconds", flow=FLOW, topic=LOST) == 0
    assert watched.value("heliograph_groups", flow=FLOW) == 2
    until(lambda: watched.value("heliograph_groups_synced", flow=FLOW) == 1)
    assert watched.value("heliograph_leases_wanted", flow=FLOW) == 2
    until(lambda: watched.value("heliograph_leases", flow=FLOW) == 2)
    until(lambda: (watched.value("heliograph_heartbeat_age_seconds", flow=FLOW, topic="heartbeats") or 99) < 10)
    assert watched.value("heliograph_sync_failing", flow=FLOW, kind="checkpoints") == 0
    assert (watched.value("heliograph_events_total", flow=FLOW, level="ERROR") or 0) >= 2


def test_how_much_is_told_is_asked_for(watched: Watched) -> None:
    few, more, most = (watched.metrics(f"?detail={detail}") for detail in ("flow", "topic", "partition"))
    topics = {metric.name for metric in of.OF_TOPIC}
    assert not topics & few.keys()
    assert not any(name.startswith(SOURCE) for name in few)
    assert few["heliograph_topics_left_out"][frozenset({("flow", FLOW)})] > 3
    assert topics - ONLY_WHILE_LATE <= more.keys()
    assert {dict(labels)["partition"] for labels in more[f"{SOURCE}record_count"]} == {"all"}
    assert more[f"{SOURCE}record_count"][
        frozenset({"source": "W", "target": "V", "topic": f"W.{WELL}", "partition": "all"}.items())
    ] == sum(value for labels, value in most[f"{SOURCE}record_count"].items() if dict(labels)["topic"] == f"W.{WELL}")
    assert most.keys() >= {metric.name for metric in of.OF_PARTITION}
    assert watched.api("GET", "/metrics?detail=everything").status in (400, 422)


def test_what_is_told_without_asking_is_bounded() -> None:
    assert Detail.asked("", 10, 100) == Detail(topics=True, mm2_partitions=True, own_partitions=False)
    assert Detail.asked("", 10, MOST_PARTITIONS + 1) == Detail(True, False, False)
    assert Detail.asked("", MOST_TOPICS + 1, 100_000) == Detail(False, False, False)
    assert Detail.asked("partition", MOST_TOPICS + 1, 100_000) == Detail(True, True, True)


def test_the_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "metrics.md"
    assert page.read_text() == reference.page(), "run make docs"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return FakeClock(monkeypatch, "heliograph.service.partition_stats", "heliograph.service.window")


def test_a_window_forgets(clock: FakeClock) -> None:
    window = Window()
    assert window.spread() is None
    window.note(10)
    window.note(20)
    assert window.spread() == Spread(15, 10, 20)
    assert window.per_second() == 1.0  # over half a minute at least
    clock.now += 40
    window.note(90)
    assert window.spread() == Spread(40, 10, 90)
    assert window.per_second() == 3.0
    clock.now += 40
    assert window.spread() == Spread(90, 90, 90)
    clock.now += 100
    assert window.spread() is None
    assert window.per_second() == 0


def test_a_tally_goes_on_with_the_next_lease(clock: FakeClock) -> None:
    stats = PartitionStats(_known_since=clock.now)

    def note(lease: str, records: int, at: int, end: int, newest: float = -1.0, attempt: int = 0) -> None:
        copied = Copied(records, records * 10, int(newest * 1000), int(clock.now * 1000))
        stats.note((lease, attempt, 0), Progress(Position(at, at), end, copied))

    note("one", 0, 100, 200)
    clock.now += 7
    assert stats.seconds_behind() == 7  # nothing copied yet: since it is known
    note("one", 50, 150, 200, clock.now - 3600)
    note("one", 60, 160, 200, clock.now - 3600)
    assert stats.seconds_behind() == 3600  # a backlog, as old as what was copied last
    note("one", 5, 165, 200, clock.now - 60, attempt=1)
    note("two", 30, 195, 200, clock.now - 1)
    note("one", 10, 170, 200, clock.now - 60, attempt=1)  # its last word, late
    note("two", 35, 200, 200, clock.now - 1)
    assert (stats.records, stats.size, stats.seconds_behind()) == (105, 1050, 0)
    assert stats.ages.spread() == Spread((3600 + 3600 + 60 + 1 + 60 + 1) * 1000 / 6, 1000, 3_600_000)
    clock.now += 100
    note("two", 35, 200, 210)
    clock.now += 5
    assert stats.seconds_behind() == 5  # and not since the last record
