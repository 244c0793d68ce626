"""Spark's worker daemon is loaded while the JVM starts, and can be replaced at any time."""

import json
import os
from pathlib import Path
from typing import Any

import psutil

from heliograph.engine.daemon_ahead import start_ahead
from heliograph.engine.worker_daemon import SOCKET
from running.command import program_said
from waiting import PATIENCE, until

# `run` returns a worker's process and its parent, and its PYTHONPATH.
_PROGRAM = """
import json, os, sys
from pyspark import SparkContext
from heliograph.engine.spark import Engine

def of_worker(items):
    yield os.getpid(), os.getppid(), os.environ.get("PYTHONPATH", "")

def run():
    (result,) = SparkContext._active_spark_context.parallelize([0], 1).mapPartitions(of_worker).collect()
    return result

engine = Engine(2, conf=json.loads(sys.argv[1]))
engine.start()
daemon = engine.daemon_ahead
"""
_END = "engine.end_jvm(60)\n"


def _said(program: str, **environment: str) -> Any:
    """What the program printed as JSON, with these variables in the environment of Spark's workers."""
    conf = {f"spark.executorEnv.{name}": value for name, value in environment.items()}
    return json.loads(program_said("-c", _PROGRAM + program, json.dumps(conf)))


def test_workers_are_forked_by_the_daemon_that_was_started_ahead() -> None:
    program = "result = run()\n" + _END + "print(json.dumps([*result, daemon.pid, daemon.poll()]))"
    worker, parent, _, daemon, status = _said(program)
    assert parent == daemon
    assert status is not None
    until(lambda: not psutil.pid_exists(worker))


def test_workers_have_the_environment_that_spark_gives_its_daemon(tmp_path: Path) -> None:
    _, _, path = _said("print(json.dumps(run()))\n" + _END, PYTHONPATH=str(tmp_path))
    assert str(tmp_path) in path.split(os.pathsep)


def test_spark_starts_another_daemon_if_that_one_dies() -> None:
    program = "run(); daemon.kill(); daemon.wait(); print(json.dumps([run()[1], daemon.pid]))\n" + _END
    parent, daemon = _said(program)
    assert parent != daemon


def test_spark_starts_a_daemon_if_none_was_started_ahead(tmp_path: Path) -> None:
    daemon, (_, parent, _) = _said(
        "print(json.dumps([daemon, run()]))\n" + _END, **{SOCKET: str(tmp_path / ("long" * 40))}
    )
    assert daemon is None
    assert parent


def test_a_killed_jvm_takes_the_daemon_and_its_workers_with_it() -> None:
    worker, status = _said(
        "worker, _, _ = run(); engine.kill(); print(json.dumps([worker, daemon.poll()]), flush=True); os._exit(0)"
    )
    assert status is not None
    until(lambda: not psutil.pid_exists(worker))


def test_a_daemon_that_no_jvm_connects_to_ends_with_the_driver(tmp_path: Path) -> None:
    daemon = start_ahead(tmp_path / "s")
    assert daemon.stdin is not None
    daemon.stdin.close()
    assert daemon.wait(PATIENCE) == 0
