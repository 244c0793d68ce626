"""Prometheus' rules and Grafana's dashboards, against what a running flow exposes and with Prometheus itself."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import promql_parser
import pytest
import yaml
from prometheus import Prometheus

from heliograph.metrics import definitions as of
from logs import until
from monitoring.conftest import GROUP, KAFKAS, WELL, Watched, lose_records
from monitoring.prometheus import looking_at, rules
from monitoring.tools import tool

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
TESTS = MONITORING / "prometheus" / "heliograph-rules-test.yml"
DASHBOARDS = sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))
KNOWN = {metric.name: metric for metric in (*KAFKAS, *of.OF_PROCESS, *of.OF_FLOW, *of.OF_TOPIC, *of.OF_PARTITION)}
# Of Prometheus itself, and of prometheus-client.
_OTHERS = {
    "up": {"job", "instance"},
    **{f"process_{name}": set() for name in ("cpu_seconds_total", "resident_memory_bytes", "start_time_seconds")},
}
_ADDED = {"job", "instance"}  # to every series that is scraped
# Panels that are empty without errors.
_EMPTY = {
    "Not in sync",
    "Records before retention overtakes",
    "Fewest records before retention overtakes",
}
# Those whose causes the flow under test has; those of the others: test_alerts.py.
FIRING = {
    *("HeliographTaskFailed", "HeliographPartitionStopped", "HeliographTopicNotMirrored", "HeliographDataLoss"),
    *("HeliographGroupActive",),
}


def _panels() -> list[tuple[str, str]]:
    """Title and expression, with everything selected."""
    return [
        (panel["title"], target["expr"].replace("$flow", ".*").replace("$topic", ".*"))
        for file in DASHBOARDS
        for panel in json.loads(file.read_text())["panels"]
        for target in panel["targets"]
    ]


def _expressions() -> list[str]:
    return [rule["expr"] for rule in (*rules("alert"), *rules("record"))] + [expr for _title, expr in _panels()]


@pytest.mark.parametrize("expression", sorted(set(_expressions())))
def test_expressions_name_metrics_and_labels_that_there_are(expression: str) -> None:
    selectors: list[promql_parser.VectorSelector] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            selectors.append(node)

    promql_parser.walk(promql_parser.parse(expression), visit)
    assert selectors
    for selector in selectors:
        assert selector.name in KNOWN or selector.name in _OTHERS, selector.name
        labels = set(KNOWN[selector.name].labels) if selector.name in KNOWN else _OTHERS[selector.name]
        assert {matcher.name for matcher in selector.matchers.matchers} <= labels | _ADDED


def test_no_label_is_one_of_prometheus_own() -> None:
    assert not [metric.name for metric in KNOWN.values() if _ADDED & set(metric.labels)]


def test_each_alert_has_a_severity_words_a_page_and_a_test() -> None:
    anchors = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in (ROOT / "docs" / "operations.md").read_text().splitlines()
        if line.startswith("#")
    }
    alerts = {rule["alert"]: rule for rule in rules("alert")}
    tested = {
        re.findall(r'alertname="(\w+)"', sample["labels"])[0]
        for case in yaml.safe_load(TESTS.read_text())["tests"]
        for check in case["promql_expr_test"]
        for sample in check["exp_samples"]
    }
    assert alerts.keys() == tested
    for name, rule in alerts.items():
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), name
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}, name
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert (page, anchor in anchors) == ("docs/operations.md", True), name


def test_the_dashboards_are_as_they_are_made() -> None:
    sys.path.insert(0, str(MONITORING))
    try:
        import dashboards
    finally:
        sys.path.remove(str(MONITORING))
    assert {file.name: file.read_text() for file in DASHBOARDS} == {
        f"heliograph-{name}.json": dashboards.dashboard(name) for name in dashboards.DASHBOARDS
    }, "run make docs"


def test_alerts_fire_for_their_cause_and_for_nothing_else() -> None:
    done = subprocess.run(
        [tool("promtool"), "test", "rules", TESTS.name], cwd=TESTS.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_is_one_that_prometheus_takes() -> None:
    file = TESTS.parent / "prometheus.yml"
    done = subprocess.run([tool("promtool"), "check", "config", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def prometheus(watched: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with looking_at(watched.api.port, tmp_path_factory.mktemp("prometheus")) as server:
        until(server.up)
        yield server


def test_alerts_fire_for_what_goes_wrong_in_a_running_flow(prometheus: Prometheus, watched: Watched) -> None:
    before = {"HeliographDataLoss"}  # which happened before Prometheus looked: a counter that does not grow is no alert
    until(lambda: FIRING - before <= prometheus.firing() <= FIRING)
    lose_records(watched)
    until(lambda: prometheus.firing() >= FIRING)


def test_every_panel_has_data(prometheus: Prometheus, watched: Watched) -> None:
    offsets = iter(range(700, 1000))

    def empty() -> list[str]:
        watched.pair.a.commit(GROUP, WELL, next(offsets))  # for the checkpoints of the last minute
        return [
            f"{title}: {expression}"
            for title, expression in _panels()
            if title not in _EMPTY and not prometheus.query(expression.removesuffix(" > 0"))  # all may be well by now
        ]

    until(lambda: not empty(), empty, every=1.0)
