"""`/metrics?names=`: the names that dashboards and scripts for MirrorMaker 2 look for, and what stands behind them."""

import math
import re
import subprocess

import promql_parser
import pytest
from promql_parser import VectorSelector

from fake_clock import FakeClock
from heliograph.copy.counts import Counts, Recent
from heliograph.copy.signals import Report
from heliograph.metrics import mbeans
from heliograph.metrics.connect import put_connectors, put_tasks
from heliograph.metrics.naming import SCHEMES, Names
from heliograph.metrics.sheet import Sheet
from heliograph.model.partitions import MirrorPartition
from heliograph.service.flow_stats import FlowStats
from heliograph.service.flow_view import Task
from heliograph.service.running_lease import RunningLease
from logs import until
from monitoring.conftest import FLOW, GROUP, WELL, Labels, Watched, samples, write_now

CONNECTOR = f"{FLOW}.MirrorSourceConnector"
# As users of each exporter write them.
EXPRESSIONS = {
    Names.STRIMZI: (
        'kafka_producer_batch_size_avg{clientid=~"\\"connector-producer-.*MirrorSourceConnector-0\\""}',
        'max(kafka_producer_request_latency_avg{clientid=~".*SourceConnector-[0-9]+\\""}) > 500',
        'sum(kafka_producer_buffer_available_bytes{clientid=~"\\".*SourceConnector-[0-9]+\\""})',
        "sum(rate(kafka_producer_outgoing_byte_total[5m]))",
        "sum(rate(kafka_consumer_incoming_byte_total[5m]))",
        'avg(kafka_connect_connector_task_offset_commit_avg_time_ms{connector=~"\\".*SourceConnector\\""})',
        'sum(kafka_connect_source_task_source_record_active_count{connector=~"\\".*SourceConnector\\""})',
        'kafka_connect_connector_task_running_ratio{task="1"} < 0.9',
        "kafka_connect_connector_task_batch_size_avg",
        'sum(kafka_consumer_fetch_manager_records_lag{clientid=~".*replication-consumer\\""}) by (topic, partition)',
        "sum(kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg) by (partition, topic)",
        "sum by (group) (kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms)",
        'sum(kafka_connect_connector_status{status="running"})',
        "sum(kafka_connect_worker_connector_failed_task_count) > 0",
        "sum(kafka_connect_worker_connector_destroyed_task_count)",
        "kafka_connect_coordinator_assigned_connectors + kafka_connect_coordinator_assigned_tasks",
        "kafka_connect_worker_connector_count + kafka_connect_worker_task_count",
        "kafka_connect_worker_rebalance_rebalancing == 1",
        "kafka_connect_task_error_total_record_failures",
    ),
    Names.STRIMZI_REPORTER: (
        'kafka_producer_producer_metrics_batch_size_avg{client_id=~"connector-producer-.*-0"}',
        "sum(kafka_producer_producer_metrics_buffer_available_bytes) by (client_id)",
        "sum(rate(kafka_producer_producer_metrics_outgoing_byte[5m]))",
        "sum(rate(kafka_consumer_consumer_metrics_incoming_byte[5m]))",
        'sum(kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id=~".*replication-consumer"})',
        'sum(kafka_connect_connector_task_metrics_offset_commit_avg_time_ms{connector=~".*SourceConnector"})',
        "kafka_connect_source_task_metrics_source_record_active_count",
        "sum(kafka_connect_connect_worker_metrics_connector_count)",
        "sum(kafka_connect_connect_worker_metrics_task_count)",
        "kafka_connect_connect_worker_rebalance_metrics_rebalancing",
        "kafka_connect_connect_coordinator_metrics_assigned_tasks",
        'kafka_connect_connector_task_metrics_status_info{status="running"}',
        "sum(kafka_connect_mirror_mirrorsourceconnector_byte_rate)",
        "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms",
    ),
    Names.JMX_EXPORTER: (
        'kafka_producer_producer_metrics_request_latency_avg{client_id=~"\\"connector-producer-.*\\""}',
        "kafka_producer_producer_metrics_outgoing_byte_total",
        "kafka_connect_connector_task_metrics_running_ratio",
        "kafka_connect_source_task_metrics_source_record_write_total",
        "kafka_connect_mirror_mirrorsourceconnector_record_count",
    ),
    Names.CONNECT: (
        *(
            f"connect_worker_metrics_mirrorsourceconnector_connector_{state}_task_count"
            for state in ("destroyed", "failed", "paused", "running", "total", "unassigned")
        ),
        "connect_worker_metrics_mirrorcheckpointconnector_connector_running_task_count",
        'connect_connector_task_metrics_mirrorsourceconnector_batch_size_avg{task="0"}',
        "connect_connector_task_metrics_mirrorsourceconnector_batch_size_max",
        "connect_connector_task_metrics_mirrorsourceconnector_offset_commit_avg_time_ms",
        "connect_connector_task_metrics_mirrorsourceconnector_offset_commit_max_time_ms",
        "connect_connector_task_metrics_mirrorsourceconnector_offset_commit_success_percentage < 1",
        "connect_connector_task_metrics_mirrorsourceconnector_offset_commit_failure_percentage > 0",
        "connect_connector_task_metrics_mirrorsourceconnector_running_ratio",
        "connect_source_task_metrics_mirrorsourceconnector_source_record_active_count",
        "rate(connect_source_task_metrics_mirrorsourceconnector_source_record_poll_total[1m])",
        "rate(connect_source_task_metrics_mirrorsourceconnector_source_record_write_total[1m])",
        "connect_task_error_metrics_mirrorsourceconnector_total_record_errors",
        "connect_task_error_metrics_mirrorsourceconnector_total_record_failures",
        "connect_task_error_metrics_mirrorsourceconnector_total_records_skipped",
        "connect_task_error_metrics_mirrorsourceconnector_total_retries",
        'connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms{source="W",target="V",partition=~"[0-9]+"}',
        *(
            f'connect_mirror_mirrorsourceconnector_{name}{{target="V",topic="W.{WELL}",partition="1"}}'
            for name in ("byte_rate", "byte_count", "record_age_ms", "record_rate", "record_count")
        ),
        "connect_mirror_mirrorsourceconnector_replication_latency_ms > 60000",
        "kafka_connect_connect_worker_metrics_connector_count",
        "kafka_connect_connect_worker_metrics_task_count",
    ),
}


@pytest.mark.parametrize("names", EXPRESSIONS)
def test_expressions_of_users_find_series(watched: Watched, names: Names) -> None:
    watched.pair.a.commit(GROUP, WELL, 700)  # the latency of checkpoints is that of the last minute
    selectors = [selector for expression in EXPRESSIONS[names] for selector in _selectors(expression)]
    write_now(watched.pair.a, WELL, 10)

    def without_series() -> list[str]:
        values = watched.metrics(f"?names={names}")
        return [str(selector) for selector in selectors if not _matches(selector, values)]

    until(lambda: not without_series(), without_series)


def _selectors(expression: str) -> list[VectorSelector]:
    found: list[VectorSelector] = []
    promql_parser.walk(
        promql_parser.parse(expression), lambda node: found.append(node) if isinstance(node, VectorSelector) else None
    )
    assert found, expression
    return found


def _matches(selector: VectorSelector, values: dict[str, dict[Labels, float]]) -> list[Labels]:
    assert selector.name is not None
    return [
        labels
        for labels in values.get(selector.name, {})
        if all(
            re.fullmatch(matcher.value, dict(labels).get(matcher.name, ""))
            if matcher.op == promql_parser.MatchOp.Re
            else dict(labels).get(matcher.name, "") == matcher.value
            for matcher in selector.matchers.matchers
        )
    ]


def test_each_scheme_has_the_same_values_and_heliographs_own(watched: Watched) -> None:
    own = {name for name in watched.metrics() if name.startswith("heliograph_")}
    for names, scheme in SCHEMES.items():
        values = watched.metrics(f"?names={names}")
        assert own <= values.keys(), names
        total = scheme.name(mbeans.WRITE_TOTAL, "MirrorSourceConnector")
        assert total is not None
        assert {dict(labels)["connector"] for labels in values[total]} == {scheme.value(CONNECTOR)}

        def agrees(total: str = total, names: Names = names) -> bool:
            values = watched.metrics(f"?names={names}")
            return sum(values[total].values()) == values["heliograph_copied_records_total"][_FLOW]

        until(agrees)
    assert watched.api("GET", "/metrics?names=jolokia").status == 422


_FLOW = frozenset({("flow", FLOW)})


def test_producers_of_tasks_count_what_the_flow_copies(watched: Watched) -> None:
    before = watched.metrics()["kafka_consumer_incoming_byte_total"]
    write_now(watched.pair.a, WELL, 100)

    def sums() -> dict[str, float]:
        values = watched.metrics()
        return {
            "sent": sum(values["kafka_producer_outgoing_byte_total"].values()),
            "copied": values["heliograph_copied_bytes_total"][_FLOW],
            "fetched": sum(values["kafka_consumer_incoming_byte_total"].values()) - sum(before.values()),
            "active": sum(values["kafka_connect_source_task_source_record_active_count"].values()),
        }

    def agree() -> bool:
        now = sums()
        return now["sent"] == now["copied"] and now["fetched"] >= 100 * 100 and not now["active"]

    until(agree, sums)
    values = watched.metrics()
    assert all(0 < ratio <= 1 for ratio in values["kafka_connect_connector_task_running_ratio"].values())
    assert set(values["kafka_connect_connector_task_offset_commit_success_percentage"].values()) == {1.0}
    assert min(values["kafka_producer_request_latency_avg"].values()) > 0
    largest = values["kafka_connect_connector_task_batch_size_max"]
    means = values["kafka_connect_connector_task_batch_size_avg"]
    assert means.keys() == largest.keys()
    assert all(1 <= mean <= largest[task] for task, mean in means.items())
    assert min(values["kafka_producer_buffer_available_bytes"].values()) > 0


def test_the_metrics_port_serves_what_scripts_grep_for(watched: Watched) -> None:
    port = watched.metrics_port
    write_now(watched.pair.a, WELL, 10)
    pattern = 'kafka_producer_batch_size_avg{clientid="\\\\"connector-producer-W->V.MirrorSourceConnector'
    text = port("GET", "/metrics").body
    found = subprocess.run(["grep", "-e", pattern], input=text, capture_output=True, text=True, check=True).stdout
    assert len(found.splitlines()) == 2, found  # one of each task
    assert port("GET", "/health").body["status"] == "healthy"
    assert "kafka_producer_producer_metrics_batch_size_avg" in samples(
        port("GET", "/metrics?names=strimzi-reporter").body
    )
    for method, path in (("GET", "/"), ("GET", "/connectors"), ("DELETE", "/connectors/x"), ("POST", "/metrics")):
        assert port(method, path).status in (404, 405), path
    assert "metrics are at" in watched.log.read_text()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    services = ("partition_stats", "running_lease", "task_stats", "window")
    return FakeClock(monkeypatch, *(f"heliograph.service.{name}" for name in services))


def test_what_a_task_did_in_the_last_minute_is_then_no_more(clock: FakeClock) -> None:
    partition = MirrorPartition("t", "A.t", 0)
    stats = FlowStats("A->B", lambda: None)
    stats.retain([partition])
    lease, counts = RunningLease("lease", 0, (partition,)), Counts(fetched=5000, retries=1)
    stats.task(0)
    for records, size in ((10, 1000), (30, 3000)):
        counts.append("none", "", records, size)
    counts.appends.note(0.010)
    counts.appends.note(0.030)
    counts.reports.note(0.004)
    counts.reports.note(0.008, failed=True)
    clock.now += 10
    report = Report("lease", 0, 0, counts, {}, (), recent=Recent(7, 99, 30, 0.008))
    assert stats.apply_report(Report.from_record(*report.to_record()), lease)
    stats.apply_report(report, lease)  # totals: the same report again changes nothing

    def values(names: Names) -> dict[str, float]:
        task = stats.tasks[0]
        sheet = Sheet(SCHEMES[names])
        put_tasks(sheet, "A->B", "c", [Task((partition,), True, "", task, task.running_ratio(lease.age()))], [])
        return {family.name: sample.value for family in sheet.families() for sample in family.samples}

    lately = {
        "kafka_producer_batch_size_avg": 2000,
        "kafka_producer_request_latency_avg": pytest.approx(20),
        "kafka_connect_connector_task_batch_size_avg": 20,
        "kafka_connect_connector_task_batch_size_max": 30,
        "kafka_connect_connector_task_offset_commit_avg_time_ms": pytest.approx(6),
        "kafka_connect_connector_task_offset_commit_max_time_ms": pytest.approx(8),
        "kafka_connect_connector_task_offset_commit_success_percentage": 0.5,
        "kafka_connect_connector_task_offset_commit_failure_percentage": 0.5,
    }
    remaining = {
        "kafka_producer_outgoing_byte_total": 4000,
        "kafka_producer_buffer_available_bytes": 99,
        "kafka_consumer_incoming_byte_total": 5000,
        "kafka_connect_source_task_source_record_active_count": 7,
        "kafka_connect_task_error_total_retries": 1,
    }
    for names in (Names.HELIOGRAPH, Names.STRIMZI):
        assert values(names).items() >= (lately | remaining).items()
    clock.now += 61
    assert not lately.keys() & values(Names.HELIOGRAPH).keys()
    assert all(math.isnan(values(Names.STRIMZI)[name]) for name in lately)
    assert values(Names.STRIMZI).items() >= remaining.items()


def test_the_running_ratio_is_the_share_of_time_with_a_lease(clock: FakeClock) -> None:
    task = FlowStats("A->B", lambda: None).task(0)
    clock.now += 30
    assert task.running_ratio(30) == 1.0
    task.lease_ended(30)
    clock.now += 10
    assert task.running_ratio(0) == 0.75
    clock.now += 20
    assert task.running_ratio(20) == pytest.approx(50 / 60)


def test_work_of_a_retried_task_counts_once_for_each_attempt() -> None:
    stats, lease = FlowStats("A->B", lambda: None), RunningLease("lease", 0, ())
    first, second = Counts(fetched=100), Counts(fetched=30)
    stats.apply_report(Report("lease", 0, 0, first, {}, ()), lease)
    stats.apply_report(Report("lease", 1, 0, second, {}, ()), lease)
    stats.apply_report(Report("lease", 0, 0, first, {}, ()), lease)  # late: ignored
    assert stats.tasks[0].total.fetched == 130


def test_values_are_quoted_as_jmx_quotes_them() -> None:
    quoted, plain = SCHEMES[Names.STRIMZI], SCHEMES[Names.STRIMZI_REPORTER]
    for value in ("MirrorSourceConnector", "a-b_c.d%20", "0", ""):
        assert quoted.value(value) == value
    assert quoted.value("A->B.MirrorSourceConnector") == '"A->B.MirrorSourceConnector"'
    assert quoted.value('a"b*c?') == '"a\\"b\\*c\\?"'
    assert plain.value("A->B") == "A->B"


def test_connectors_of_the_same_class_share_a_name_and_differ_in_their_label() -> None:
    sheet = Sheet(SCHEMES[Names.CONNECT], {"A->B.x": "MirrorSourceConnector", "y": "MirrorSourceConnector"})
    put_connectors(sheet, {"A->B.x": [], "y": []})
    (family,) = (
        family
        for family in sheet.families()
        if family.name.endswith("mirrorsourceconnector_connector_total_task_count")
    )
    assert [sample.labels for sample in family.samples] == [{"connector": '"A->B.x"'}, {"connector": "y"}]


@pytest.mark.parametrize("names", SCHEMES)
def test_no_two_metrics_of_a_scheme_have_the_same_name(names: Names) -> None:
    metrics = (*mbeans.MM2, *mbeans.CONNECT, *mbeans.CLIENTS)
    given = [name for metric in metrics if (name := SCHEMES[names].name(metric, "MirrorSourceConnector")) is not None]
    assert len(set(given)) == len(given)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in given), given
