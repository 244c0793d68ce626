"""Other ways to have Spark: separate executors, and under spark-submit."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import heliograph as package
from logs import Pair, some_records
from running.command import heliograph


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


def test_it_runs_under_spark_submit(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(500))
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    submit = Path(spec.origin).parent / "bin" / "spark-submit"
    script = Path(package.__file__).parent.parent / "heliograph_submit.py"
    done = subprocess.run(
        [submit, "--master", "local[2]", script, "run", properties, "--until-caught-up"],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert pair.b.read(f"A.{topic}") == pair.a.read(topic)
