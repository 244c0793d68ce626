"""`python deploy/monitoring/dashboards.py` writes Grafana's dashboards from the panels that are listed here."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "grafana" / "dashboards"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_MM2 = "kafka_connect_mirror_mirrorsourceconnector"
_WIDE, _HALF, _SMALL = 24, 12, 4  # of 24 columns


@dataclass(frozen=True)
class Panel:
    """`queries` are pairs of an expression and a legend."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    width: int = _HALF
    kind: str = "timeseries"
    red_from: float | None = None  # from this value on
    empty: str = "No data"  # shown if there is no data
    words: tuple[str, ...] = ()  # shown for 0, which is bad, and 1, which is good

    @property
    def ranks(self) -> bool:
        """Shows the first of many, and therefore a list next to the lines."""
        return self.queries[0][0].startswith("topk")


def _number(title: str, expr: str, unit: str = "short", red_from: float | None = None) -> Panel:
    return Panel(title, ((expr, ""),), unit, _SMALL, "stat", red_from)


def _lines(title: str, expr: str, legend: str, unit: str = "short", width: int = _HALF) -> Panel:
    return Panel(title, ((expr, legend),), unit, width)


_F = 'flow=~"$flow"'
_T = f'{_F}, topic=~"$topic"'

OVERVIEW = (
    _number("Flows running", 'sum(heliograph_flow_state{state="running"})'),
    _number("Flows failed", 'sum(heliograph_flow_state{state="failed"})', red_from=1),
    _number("Partitions stopped", 'sum(heliograph_partitions{state="stopped"})', red_from=1),
    _number(
        "Records lost, last day",
        'round(sum(increase(heliograph_notice_records_total{kind="data-loss"}[1d])))',
        red_from=1,
    ),
    _number("Longest lag", "max(heliograph_lag_seconds)", "s", 300),
    _number("Tasks failed", "sum(kafka_connect_worker_connector_failed_task_count)", red_from=1),
    _lines("Records per second", "sum by (flow) (rate(heliograph_copied_records_total[1m]))", "{{flow}}", "cps"),
    _lines("Bytes per second", "sum by (flow) (rate(heliograph_copied_bytes_total[1m]))", "{{flow}}", "Bps"),
    _lines("Lag in records", "heliograph_lag_records", "{{flow}}"),
    _lines("Lag in seconds", "heliograph_lag_seconds", "{{flow}}", "s"),
    _lines("Partitions by state", "sum by (state) (heliograph_partitions)", "{{state}}"),
    Panel(
        "Problems per hour",
        (("sum by (flow, kind) (increase(heliograph_notices_total[1h])) > 0", "{{flow}} {{kind}}"),),
        empty="No problems",
    ),
    _lines("Age of copied heartbeats", "heliograph_heartbeat_age_seconds", "{{flow}} {{topic}}", "s"),
    Panel(
        "Warnings and errors per hour",
        (('increase(heliograph_events_total{level!="INFO"}[1h]) > 0', "{{flow}} {{level}}"),),
        empty="None",
    ),
)
FLOW = (
    _number("Mirrors", f"sum(heliograph_mirrors{{{_F}}})"),
    _number("Partitions", f"sum(heliograph_partitions{{{_F}}})"),
    _number("Stopped", f'sum(heliograph_partitions{{{_F}, state="stopped"}})', red_from=1),
    _number("Topics not mirrored", f"sum(heliograph_topics_failed{{{_F}}})", red_from=1),
    _number("Lag", f"max(heliograph_lag_seconds{{{_F}}})", "s", 300),
    _number("Since last copy", f"min(heliograph_seconds_since_last_copy{{{_F}}})", "s"),
    _lines("Records per second", f"rate(heliograph_copied_records_total{{{_F}}}[1m])", "{{flow}}", "cps"),
    _lines("Bytes per second", f"rate(heliograph_copied_bytes_total{{{_F}}}[1m])", "{{flow}}", "Bps"),
    _lines("Lag in records", f"heliograph_lag_records{{{_F}}}", "{{flow}}"),
    _lines("Lag in bytes, estimated", f"heliograph_lag_bytes{{{_F}}}", "{{flow}}", "bytes"),
    Panel(
        "Replication latency",
        (
            (f"max by (target) ({_MM2}_replication_latency_ms_max)", "{{target}} max"),
            (f"avg by (target) ({_MM2}_replication_latency_ms_avg)", "{{target}} mean"),
        ),
        "ms",
    ),
    _lines("Partitions by state", f"sum by (state) (heliograph_partitions{{{_F}}})", "{{state}}"),
    Panel(
        "Bytes per second, by compression",
        ((f"sum by (codec) (rate(heliograph_codec_bytes_total{{{_F}}}[1m])) > 0", "{{codec}}"),),
        "Bps",
        empty="Nothing is copied",
    ),
    Panel(
        "Re-encoded records by reason, share of all",
        (
            (
                f'sum by (how) (rate(heliograph_encoded_records_total{{{_F}, how!="as-it-is"}}[5m])) '
                f"/ on () group_left () sum(rate(heliograph_encoded_records_total{{{_F}}}[5m])) > 0",
                "{{how}}",
            ),
        ),
        "percentunit",
        empty="No batch is re-encoded",
    ),
    Panel(
        "Throttled by brokers, share of the time",
        (
            (
                f"sum by (flow, side) (rate(heliograph_throttled_seconds_total{{{_F}}}[1m])) "
                f"/ on (flow) group_left () sum by (flow) (heliograph_leases_wanted{{{_F}}}) > 0",
                "{{flow}} {{side}}",
            ),
        ),
        "percentunit",
        empty="Not throttled",
    ),
    Panel(
        "Records before retention overtakes",
        ((f"heliograph_retention_margin_records{{{_F}}}", "{{flow}}"),),
        empty="No partition is late",
    ),
    _lines("Waiting for an open transaction", f"heliograph_open_transaction_seconds{{{_F}}}", "{{flow}}", "s"),
    Panel(
        "Not copied, by reason",
        ((f"heliograph_refusals{{{_F}}}", "{{flow}} {{reason}} (final: {{final}})"),),
        empty="Everything is copied",
    ),
    Panel(
        "Records with problems, by kind",
        ((f"heliograph_notice_records_total{{{_F}}} > 0", "{{flow}} {{kind}}"),),
        empty="No problems",
    ),
)
TOPIC = (
    _lines("Largest lag", f"topk(10, heliograph_topic_lag_records{{{_T}}})", "{{flow}} {{topic}}"),
    _lines("Oldest lag", f"topk(10, heliograph_topic_lag_seconds{{{_T}}})", "{{flow}} {{topic}}", "s"),
    _lines(
        "Busiest", f"topk(10, rate(heliograph_topic_copied_records_total{{{_T}}}[1m]))", "{{flow}} {{topic}}", "cps"
    ),
    _lines(
        "Most bytes", f"topk(10, rate(heliograph_topic_copied_bytes_total{{{_T}}}[1m]))", "{{flow}} {{topic}}", "Bps"
    ),
    _lines("Lag in bytes, estimated", f"topk(10, heliograph_topic_lag_bytes{{{_T}}})", "{{flow}} {{topic}}", "bytes"),
    _lines(
        "Longest without a copy",
        f"topk(10, heliograph_topic_seconds_since_last_copy{{{_T}}})",
        "{{flow}} {{topic}}",
        "s",
    ),
    Panel(
        "Partitions stopped",
        ((f"heliograph_topic_partitions_stopped{{{_T}}} > 0", "{{flow}} {{topic}}"),),
        empty="No partition is stopped",
    ),
    Panel(
        "Fewest records before retention overtakes",
        ((f"bottomk(10, heliograph_topic_retention_margin_records{{{_T}}})", "{{flow}} {{topic}}-{{partition}}"),),
        empty="No partition is late",
    ),
    _lines("Partitions", f"sum by (flow) (heliograph_topic_partitions{{{_T}}})", "{{flow}}"),
    _lines("By partition, MM2's name", f"topk(10, {_MM2}_record_rate)", "{{topic}}-{{partition}}", "cps", _WIDE),
)
GROUPS = (
    _number("Groups", f"sum(heliograph_groups{{{_F}}})"),
    _number("Synced", f"sum(heliograph_groups_synced{{{_F}}})"),
    _number("In use on the target", f'sum(heliograph_groups_not_synced{{{_F}, reason="active"}})'),
    _number("Not synced", f'sum(heliograph_groups_not_synced{{{_F}, reason!="active"}})', red_from=1),
    _number("Partitions without offset", f"sum(heliograph_group_partitions_untranslated{{{_F}}})"),
    _number("Checkpoints age", f'max(heliograph_sync_seconds_since_success{{{_F}, kind="checkpoints"}})', "s", 600),
    Panel(
        "Groups not synced, by reason",
        ((f"heliograph_groups_not_synced{{{_F}}} > 0", "{{flow}} {{reason}}"),),
        empty="Every group is synced",
    ),
    _lines("Checkpoints per second", f"rate(heliograph_checkpoints_written_total{{{_F}}}[5m])", "{{flow}}", "cps"),
    _lines(
        "Checkpoint latency, MM2's name",
        "max by (group) (kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms_max)",
        "{{group}}",
        "ms",
    ),
    _lines(
        "Since the last sync",
        f'heliograph_sync_seconds_since_success{{{_F}, kind=~"groups|checkpoints|group offsets"}}',
        "{{flow}} {{kind}}",
        "s",
    ),
)
ENGINE = (
    Panel("Spark", (("min(heliograph_spark_up)", ""),), width=_SMALL, kind="stat", words=("down", "up")),
    _number("Leases", "sum(heliograph_leases)"),
    _number("Leases missing", "sum(heliograph_leases_wanted) - sum(heliograph_leases)", red_from=1),
    _number("Failures, last hour", "round(sum(increase(heliograph_lease_failures_total[1h])))", red_from=1),
    _number("Connectors", "sum(kafka_connect_worker_connector_count)"),
    _number("Tasks", "sum(kafka_connect_worker_task_count)"),
    _lines("Age of the oldest lease", "heliograph_lease_age_seconds", "{{flow}}", "s"),
    _lines("Renewals per second", "rate(heliograph_lease_renewals_total[5m])", "{{flow}}", "cps"),
    _lines(
        "Records per second, by task",
        "kafka_connect_source_task_source_record_write_rate",
        "{{connector}} {{task}}",
        "cps",
    ),
    Panel(
        "Records rejected by the target, by task",
        (("kafka_connect_task_error_total_record_errors > 0", "{{connector}} {{task}}"),),
        empty="Every record is accepted",
    ),
    _lines("Tasks by state", "count by (status) (kafka_connect_connector_status)", "{{status}}"),
    _lines("Driver requests per second", "rate(heliograph_requests_total[1m])", "{{flow}}", "reqps"),
    _lines("Time since the last sync", "max by (kind) (heliograph_sync_seconds_since_success)", "{{kind}}", "s"),
    Panel("Not in sync", (("heliograph_sync_failing == 1", "{{flow}} {{kind}}"),), empty="Everything is in sync"),
    Panel("Differences that cannot be removed", (("heliograph_drift > 0", "{{flow}} {{what}}"),), empty="None"),
    _lines("CPU of the driver", 'rate(process_cpu_seconds_total{job="heliograph"}[1m])', "{{instance}}", "percentunit"),
    _lines("Memory of the driver", 'process_resident_memory_bytes{job="heliograph"}', "{{instance}}", "bytes"),
    Panel("Version", (("heliograph_build_info", "{{version}} (Python {{python}})"),), kind="stat"),
)
DASHBOARDS = {
    "overview": ("Heliograph: overview", OVERVIEW),
    "flow": ("Heliograph: flow", FLOW),
    "topic": ("Heliograph: topics", TOPIC),
    "groups": ("Heliograph: consumer groups", GROUPS),
    "engine": ("Heliograph: engine", ENGINE),
}


def _panel(number: int, panel: Panel, x: int, y: int, height: int) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red_from is not None:
        steps.append({"color": "red", "value": panel.red_from})
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expr, "legendFormat": legend or "__auto"}
            for at, (expr, legend) in enumerate(panel.queries)
        ],
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "noValue": panel.empty,
                "mappings": _mappings(panel.words),
                "thresholds": {"mode": "absolute", "steps": steps},
                "custom": {} if panel.kind == "stat" else {"fillOpacity": 0 if panel.ranks else 10},
            },
            "overrides": [],
        },
        "options": _stat_options(panel) if panel.kind == "stat" else _line_options(panel),
    }


def _mappings(words: tuple[str, ...]) -> list[dict[str, Any]]:
    colours = ("red", "green")
    named = {str(at): {"text": word, "color": colours[at], "index": at} for at, word in enumerate(words)}
    return [{"type": "value", "options": named}] if named else []


def _stat_options(panel: Panel) -> dict[str, Any]:
    """A number with a legend shows its legend."""
    named = bool(panel.queries[0][1])
    return {
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "textMode": "name" if named else "auto",
        "graphMode": "none" if named or panel.words else "area",
    }


def _line_options(panel: Panel) -> dict[str, Any]:
    below = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    beside = below | {"displayMode": "table", "placement": "right", "calcs": ["lastNotNull"]}
    ranked = beside | {"sortBy": "Last *", "sortDesc": True}
    return {"legend": ranked if panel.ranks else below, "tooltip": {"mode": "multi", "sort": "desc"}}


def _placed(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    placed: list[dict[str, Any]] = []
    x = y = 0
    for number, panel in enumerate(panels, 1):
        height = 4 if panel.width == _SMALL else 8
        if x + panel.width > _WIDE:
            x, y = 0, y + int(placed[-1]["gridPos"]["h"])
        placed.append(_panel(number, panel, x, y, height))
        x += panel.width
    return placed


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
        "allValue": ".*",
        "refresh": 2,
        "sort": 1,
    }


def dashboard(name: str) -> str:
    """A dashboard as Grafana imports it."""
    title, panels = DASHBOARDS[name]
    variables = [_variable("flow", "label_values(heliograph_flow_state, flow)")]
    if name == "topic":
        variables.append(_variable("topic", 'label_values(heliograph_topic_lag_records{flow=~"$flow"}, topic)'))
    whole = {
        "uid": f"heliograph-{name}",
        "title": title,
        "tags": ["heliograph", "kafka"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [
            {"type": "dashboards", "tags": ["heliograph"], "title": "Heliograph", "asDropdown": True, "keepTime": True}
        ],
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                *(variables if name in ("flow", "topic", "groups") else []),
            ]
        },
        "panels": _placed(panels),
    }
    return json.dumps(whole, indent=1) + "\n"


if __name__ == "__main__":
    for name in DASHBOARDS:
        (FOLDER / f"heliograph-{name}.json").write_text(dashboard(name))
