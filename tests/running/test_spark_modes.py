"""Other ways to run Spark: separate executors, and spark-submit."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

import heliograph as package
from heliograph.engine.archive import archive_path, use_archive
from heliograph.sandbox.java import find_java
from logs import PATIENCE, Pair, some_records, until
from running.command import heliograph, kill, program_said


def test_leases_run_on_separate_executors(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic, partitions=4)
    for partition in range(4):
        pair.a.write(topic, some_records(500), partition)
    properties.write_text(properties.read_text() + "tasks.max = 2\n")
    done = heliograph(
        "run",
        properties,
        "--until-caught-up",
        "--master",
        "local-cluster[2,1,1024]",
        "--conf",
        "spark.executor.memory=512m",
    )
    assert done.returncode == 0, done.stderr
    for partition in range(4):
        assert pair.b.read(f"A.{topic}", partition) == pair.a.read(topic, partition)


def test_an_archive_of_classes_that_does_not_fit_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(find_java().executable)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert use_archive() == []
    path = archive_path()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_bytes(b"of another Java")
    assert str(path) in " ".join(use_archive())
    program = "import sys; from heliograph.engine.spark import Engine; one = Engine(1, jvm_options=sys.argv[1:]);"
    assert (
        program_said("-c", f"{program} one.start(); one.run_nothing(); print(one.end_jvm(60))", *use_archive()) == "0\n"
    )


def _submit(*arguments: object) -> tuple[list[str], dict[str, str]]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    submit = Path(spec.origin).parent / "bin" / "spark-submit"
    script = Path(package.__file__).parent.parent / "heliograph_submit.py"
    command = [str(part) for part in (submit, "--master", "local[2]", script, *arguments)]
    return command, os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def test_it_runs_under_spark_submit(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(500))
    command, env = _submit("run", properties, "--until-caught-up")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert pair.b.read(f"A.{topic}") == pair.a.read(topic)


def test_under_spark_submit_a_killed_jvm_takes_the_driver_with_it(
    pair: Pair, topic: str, properties: Path, tmp_path: Path
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    command, env = _submit("run", properties)
    with (tmp_path / "log").open("wb") as output:
        jvm = subprocess.Popen(command, stdout=output, stderr=output, env=env)  # spark-submit becomes the JVM
    try:
        mirror = f"A.{topic}"
        until(lambda: pair.b.partitions(mirror) > 0 and pair.b.bounds(mirror)[1] >= 10, (tmp_path / "log").read_text)
        family = psutil.Process(jvm.pid).children(recursive=True)
        assert family
    finally:
        kill(jvm)
    _gone, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert alive == []
