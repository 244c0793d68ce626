"""`heliograph run`: finds new topics, resumes, ends in order, reports errors."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from heliograph.model.internal_topics import PROGRESS, signals_topic
from logs import PATIENCE, Pair, Record, some_records, until
from running.command import heliograph, kill, start


def _mirrored(pair: Pair, topic: str, count: int, partition: int = 0) -> Callable[[], bool]:
    def check() -> bool:
        return pair.b.partitions(f"A.{topic}") > partition and pair.b.bounds(f"A.{topic}", partition)[1] == count

    return check


def test_new_topics_and_partitions_are_followed_and_sigterm_ends_it_in_two_seconds(
    pair: Pair, topic: str, properties: Path, tmp_path: Path
) -> None:
    """Within seconds of the source's metadata showing them, however seldom topics are refreshed."""
    properties.write_text(properties.read_text().replace("interval.seconds = 1", "interval.seconds = 600"))
    pair.a.create(topic)
    pair.a.write(topic, some_records(100))
    log = tmp_path / "log"
    properties.write_text(f"{properties.read_text()}heliograph.lease.seconds = 600\n")
    process = start("run", properties, log=log)
    try:
        until(_mirrored(pair, topic, 100))
        pair.a.create(f"{topic}-later", partitions=2)
        pair.a.write(f"{topic}-later", some_records(30), partition=1)
        until(_mirrored(pair, f"{topic}-later", 30, 1))
        pair.a.grow(topic, 3)
        pair.a.write(topic, some_records(20), partition=2)
        until(_mirrored(pair, topic, 20, 2))
        family = psutil.Process(process.pid).children(recursive=True)
        assert family
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0, log.read_text()
        assert time.monotonic() - asked < 60.0  # about one second; a lease that misses the command takes ten minutes
        _gone, alive = psutil.wait_procs(family, timeout=60)
        assert alive == []
    finally:
        process.kill()
    assert pair.b.read(f"A.{topic}") == pair.a.read(topic)


def test_both_directions_at_once_do_not_feed_on_each_other(pair: Pair, topic: str, properties: Path) -> None:
    for side in (pair.a, pair.b):
        side.create(topic)
        side.write(topic, some_records(50))
    properties.write_text(
        properties.read_text() + f"B->A.enabled = true\nB->A.topics = .*{topic}.*\nA->B.topics = .*{topic}.*\n"
    )
    for _ in range(2):
        done = heliograph("run", properties, "--until-caught-up", "--json")
        assert done.returncode == 0, done.stderr
    assert {flow["name"]: flow["mirrors"] for flow in json.loads(done.stdout)} == {"A->B": 1, "B->A": 1}
    assert pair.b.read(f"A.{topic}") == pair.a.read(topic)
    assert pair.a.read(f"B.{topic}") == pair.b.read(topic)


def test_a_circle_under_identity_names_is_refused_and_nothing_is_copied(
    pair: Pair, topic: str, properties: Path
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    properties.write_text(
        properties.read_text()
        + f"replication.policy.class = IdentityReplicationPolicy\nB->A.enabled = true\nB->A.topics = {topic}.*\n"
    )
    done = heliograph("run", properties, "--until-caught-up")
    assert done.returncode == 1
    assert f"topic {topic} is not mirrored" in done.stderr
    assert pair.a.bounds(topic) == (0, 5)


def test_identity_names_mirror_one_way(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    properties.write_text(properties.read_text() + "replication.policy.class = IdentityReplicationPolicy\n")
    done = heliograph("run", properties, "--until-caught-up")
    assert done.returncode == 0, done.stderr
    assert pair.b.read(topic) == pair.a.read(topic)


def test_what_cannot_be_caught_up_with_ends_with_status_1_and_the_reason(
    pair: Pair, topic: str, properties: Path
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    pair.b.create(f"A.{topic}")
    pair.b.write(f"A.{topic}", some_records(1))
    pair.a.create(f"{topic}-good")
    pair.a.write(f"{topic}-good", some_records(5))
    done = heliograph("run", properties, "--until-caught-up")
    assert done.returncode == 1
    assert "records that the ledger has no entry for" in done.stderr
    assert pair.b.bounds(f"A.{topic}-good") == (0, 5)


def test_a_replication_factor_that_the_target_cannot_give_is_explained(
    pair: Pair, topic: str, properties: Path
) -> None:
    pair.a.create(topic)
    properties.write_text(properties.read_text().replace("replication.factor = 1", "replication.factor = 3"))
    done = heliograph("run", properties, "--until-caught-up")
    assert done.returncode == 1
    assert "INVALID_REPLICATION_FACTOR" in done.stderr
    assert "replication.factor is 3" in done.stderr


def test_spark_settings_pass_through(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    done = heliograph(
        "run", properties, "--until-caught-up", "--master", "local[3]", "--conf", "spark.speculation=true"
    )
    assert done.returncode == 1
    assert "spark.speculation" in done.stderr


def test_a_spark_that_does_not_start_is_told_in_one_line(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    done = heliograph("run", properties, "--conf", "spark.driver.memory=no-size")
    assert done.returncode == 1
    (line,) = [text for text in done.stderr.splitlines() if text.startswith("heliograph:")]
    assert "Spark does not start" in line
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("B.bootstrap.servers = ", "#"), "B.bootstrap.servers"),
        (("A->B.enabled", "A->C.enabled"), "A->C.enabled"),
        (("clusters = A, B", "clusters = A, B, A"), "clusters"),
    ],
)
def test_a_file_that_cannot_be_run_gives_one_line_and_status_2(
    properties: Path, change: tuple[str, str], says: str
) -> None:
    properties.write_text(properties.read_text().replace(*change))
    done = heliograph("run", properties)
    assert done.returncode == 2
    (line,) = [text for text in done.stderr.splitlines() if text.startswith("heliograph:")]
    assert says in line
    assert properties.name in line


def test_an_unreachable_cluster_gives_one_line_and_status_2(properties: Path, closed_port: int) -> None:
    text = properties.read_text().splitlines()
    text[2] = f"B.bootstrap.servers = 127.0.0.1:{closed_port}"
    properties.write_text("\n".join(text))
    done = heliograph("run", properties)
    assert done.returncode == 2
    (line,) = [text for text in done.stderr.splitlines() if text.startswith("heliograph:")]
    assert "B.bootstrap.servers" in line
    assert properties.name in line


def test_three_typos_give_three_warnings_with_line_numbers(properties: Path, closed_port: int) -> None:
    lines = properties.read_text().splitlines()
    first = len(lines) + 1
    lines += ["tasks.mx = 2", "A->B.topics.exlude = x", "B.producer.linger.millis = 5"]
    lines[2] = f"B.bootstrap.servers = 127.0.0.1:{closed_port}"
    properties.write_text("\n".join(lines))
    done = heliograph("run", properties)
    warned = [line for line in done.stderr.splitlines() if "WARNING" in line]
    assert len(warned) == 3
    for number, (line, right) in enumerate(
        zip(warned, ("tasks.max", "topics.exclude", "linger.ms"), strict=True), first
    ):
        assert f"{properties.name}:{number}:" in line
        assert right in line


def test_a_missing_java_is_named(properties: Path) -> None:
    done = heliograph("run", properties, JAVA_HOME="/nowhere")
    assert done.returncode == 1
    assert "needs Java 17 or newer, and JAVA_HOME is /nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_shows_an_example() -> None:
    for command in ("run", "sandbox", "demo"):
        done = heliograph(command, "--help")
        assert done.returncode == 0
        assert re.search(rf"Example[^\n]*:\s+heliograph {command}", done.stdout), done.stdout


def test_a_killed_jvm_is_noticed(pair: Pair, topic: str, properties: Path, tmp_path: Path) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    log = tmp_path / "log"
    process = start("run", properties, log=log)
    try:
        until(_mirrored(pair, topic, 10))
        java = [child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == "java"]
        java[0].kill()
        with_status = process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise AssertionError(log.read_text()) from None
    finally:
        process.kill()
    assert with_status == 1
    assert "Spark's JVM has died" in log.read_text()


def test_a_lease_is_renewed_unless_it_has_a_stopped_partition_and_ctrl_c_ends_the_run_in_order(
    pair: Pair, topic: str, properties: Path, tmp_path: Path
) -> None:
    def leases() -> set[bytes]:
        return {record.key for record in pair.b.read(signals_topic("A"), PROGRESS) if record.key}

    properties.write_text(f"{properties.read_text()}heliograph.lease.seconds = 2\n")
    pair.a.create(topic)
    before = leases()
    process = start("run", properties, log=tmp_path / "log")
    try:
        count = 0

        def a_lease_outlives_its_length() -> bool:
            nonlocal count
            count += 10
            pair.a.write(topic, some_records(10))
            until(_mirrored(pair, topic, count))
            pair.b.write(signals_topic("A"), [Record(0, 0, b"of another run", b"{}")], PROGRESS)  # and version
            reported: dict[bytes, list[int]] = {}
            for record in pair.b.read(signals_topic("A"), PROGRESS):
                if record.key and record.key not in before | {b"of another run"}:
                    reported.setdefault(record.key, []).append(record.timestamp)
            return any(max(times) - min(times) > 4000 for times in reported.values())

        until(a_lease_outlives_its_length, every=0.5)
        renewed = leases()
        pair.b.write(f"A.{topic}", some_records(1))
        pair.a.write(topic, some_records(10))
        until(lambda: len(leases() - renewed) >= 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 0, (tmp_path / "log").read_text()
    finally:
        kill(process)
    assert "cannot be understood" not in (tmp_path / "log").read_text()
    assert "Traceback" not in (tmp_path / "log").read_text()
