"""What the benchmark compares Heliograph with: the copier on franz-go, the relay, and the source that is far away."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import delay
import franz_go
import pytest
import report
from relay import relay
from results import Bound, Copy, Limit, Results, Source
from tools import Flow, Kind, Tool, properties, without_effect
from workloads import WORKLOADS

from heliograph.sandbox.processes import Processes
from logs import PATIENCE, Pair, Record, some_records, until
from running.command import program_said

_BENCH = Path(__file__).parent.parent.parent / "bench"

needs_go = pytest.mark.skipif(franz_go.compiler() is None, reason="no Go compiler")


@contextmanager
def _copying(pair: Pair, *topics: str, codec: str = "none") -> Iterator[None]:
    flows = [(pair.a.bootstrap, pair.b.bootstrap, topic, f"{topic}.mirror") for topic in topics]
    process = subprocess.Popen(franz_go.command(flows, codec, committed=True, batch_bytes=900_000))
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


@needs_go
def test_the_copier_on_franz_go_copies_everything_about_a_record(pair: Pair, topic: str) -> None:
    headers = (("name", b"value"), ("name", b""), ("none", None))
    records = [replace(record, headers=headers) for record in some_records(500)]
    records += [Record(0, 1000, None, None), Record(0, 2000, b"", b"")]
    pair.a.create(topic, 2)
    pair.b.create(f"{topic}.mirror", 2)
    for partition in range(2):
        pair.a.write(topic, records, partition, codec=3)
    with _copying(pair, topic, codec="lz4"):
        for partition in range(2):
            until(lambda at=partition: pair.b.bounds(f"{topic}.mirror", at)[1] == len(records))  # type: ignore[misc]
            assert pair.b.read(f"{topic}.mirror", partition) == pair.a.read(topic, partition)
            assert {codec for _count, codec in pair.b.boundaries(f"{topic}.mirror", partition)} == {"lz4"}


@needs_go
def test_the_copier_on_franz_go_leaves_out_what_was_aborted(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.b.create(f"{topic}.mirror")
    pair.a.transaction(topic, 20, commit=False)
    pair.a.transaction(topic, 30)
    with _copying(pair, topic):
        until(lambda: pair.b.bounds(f"{topic}.mirror")[1] == 30)
        assert pair.b.read(f"{topic}.mirror") == pair.a.read(topic)


@needs_go
def test_the_copier_on_franz_go_ends_when_a_record_cannot_be_copied(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    flow = (pair.a.bootstrap, pair.b.bootstrap, topic, f"{topic}.mirror")  # which does not exist
    command = franz_go.command([flow], "none", committed=False, batch_bytes=900_000)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in done.stderr


def test_a_benchmark_without_a_go_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(franz_go, "compiler", lambda: None)
    franz_go.program.cache_clear()
    with pytest.raises(franz_go.NotBuilt, match="no Go compiler"):
        franz_go.program()


def test_bytes_are_relayed_later_from_far_away(tmp_path: Path) -> None:
    size = 3_000_001
    with Processes(folder=tmp_path) as processes:
        far = relay(size, lambda port: delay.start_proxy(processes, port, round_trip=1.0)[0])
    assert far.seconds >= 0.5


def test_mirrors_in_both_clusters_of_a_source_far_away_and_over_tls_are_complete() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(_BENCH)!r}); import bench; from dataclasses import replace;"
        "workloads = tuple(workload for workload in bench.WORKLOADS "
        "                  if workload.two_way or workload.far or workload.tls);"
        "tools = tuple(tool for tool in bench.TOOLS if tool.key in ('heliograph', 'franz-go'));"
        "results = bench.run(replace(bench.SHORTEST, workloads=workloads, tools=tools, limits=True));"
        "written = {source.workload: source.records for source in results.sources};"
        "copied = {(copy.workload, copy.tool) for copy in results.copies if copy.surplus == 0};"
        "print(results.failures(), written, sorted(copied), len(results.limits))"
    )
    tools = ["franz-go", "heliograph"] if franz_go.compiler() else ["heliograph"]
    said = program_said("-c", program).splitlines()[-1]
    copied = [(workload, tool) for workload in (11, 12, 13) for tool in tools]
    assert said == f"[] {{11: 24024, 12: 17160, 13: 17160}} {copied} 9"


@pytest.mark.parametrize("protocol", ["SSL", "PLAINTEXT"])
def test_mirrormaker_must_log_that_it_uses_tls(protocol: str) -> None:
    (workload,) = [workload for workload in WORKLOADS if workload.tls]
    mirror_maker = Tool("mm2", "MirrorMaker 2", 1, Kind.MIRROR_MAKER)
    names = {
        "ProducerConfig": "MirrorSourceConnector-0",
        "ConsumerConfig": "MirrorSourceConnector-0|replication-consumer",
    }
    log = "".join(
        f"{config} values: \n\tclient.id = {name}\n\tsecurity.protocol = {protocol}\n" for config, name in names.items()
    )
    missing = [f"security.protocol = SSL of the {config}" for config in names]
    assert without_effect(mirror_maker, workload, log) == ([] if protocol == "SSL" else missing)


def test_tools_connect_with_the_settings_of_each_cluster() -> None:
    source, target = ({"bootstrap.servers": f"{host}:1", "security.protocol": "SSL"} for host in ("source", "target"))
    flow = Flow("A", "B", source, target, "topic")
    lines = properties(Tool("mm2", "MirrorMaker 2", 1, Kind.MIRROR_MAKER), WORKLOADS[0], [flow]).splitlines()
    assert {"A.bootstrap.servers = source:1", "A.security.protocol = SSL"} <= set(lines)
    assert {"B.bootstrap.servers = target:1", "B.security.protocol = SSL"} <= set(lines)


def test_the_report_has_each_tool_and_what_heliograph_reaches_of_the_fastest() -> None:
    results = Results(titles={"heliograph": "Heliograph", "franz-go": "franz-go", "mm2-tuned": "MM2"})
    results.sources.append(Source(1, "small", "some records", 6, 1000, 10, 5000, 0, 0, 1.0))
    for tool, seconds in (("heliograph", 1.0), ("franz-go", 2.0), ("mm2-tuned", 8.0)):
        results.copies.append(Copy(1, tool, 1, records=1000, seconds=seconds, mirror_cpu=seconds / 1000))
    results.limits.append(Limit(1, 1, Bound.RELAY, 4000.0, 0.1))
    results.left_out.append("another: it cannot be built")
    text = report.text(results)
    assert "| 1. small | 1,000, 1.00 | 500, 2.00 | 125, 8.00 | 2.00 | 8.00 | 25% |" in text
    assert "2.00 times the rate of franz-go; 8.00 times the rate of MM2; 25% of the relay's rate" in text
    assert "- another: it cannot be built" in text
