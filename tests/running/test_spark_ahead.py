"""`heliograph run` starts Spark's JVM before it reads its file, and leaves none behind."""

import signal
from pathlib import Path

import psutil
import pytest

from heliograph.engine import spark_ahead
from running.command import heliograph, start
from waiting import PATIENCE, until


def _left(folder: Path) -> list[str]:
    """What a run with this temporary folder has left: processes and files."""
    commands = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [command for command in commands if str(folder) in command] + [path.name for path in folder.iterdir()]


def test_no_jvm_is_left_behind_by_a_file_that_is_refused(tmp_path: Path) -> None:
    done = heliograph("run", "/no/such/file", TMPDIR=str(tmp_path))
    assert done.returncode == 2
    assert "/no/such/file" in done.stderr
    assert _left(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_jvm_is_left_behind_by_a_signal_while_modules_are_loaded(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    process = start("run", "/no/such/file", log=tmp_path / "log", TMPDIR=str(folder))
    until(lambda: any("PythonGatewayServer" in text for text in _left(folder)) or process.poll() is not None)
    process.send_signal(number)
    assert process.wait(PATIENCE) in (-number, 2)  # 2: it was faster
    assert _left(folder) == []


def test_a_jvm_that_does_not_start_says_why(properties: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'not enough memory' >&2\nexit 1\n")
    java.chmod(0o755)
    done = heliograph("run", properties, JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "Spark does not start: its JVM has ended; not enough memory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        ("run a.properties", True),
        ("run a.properties --until-caught-up --json", True),
        ("serve worker.properties", True),
        ("run a.properties --plan", False),
        ("run --help", False),
        ("run a.properties --master=spark://host:7077", False),
        ("run a.properties --conf spark.driver.memory=1g", False),
        ("status a.properties", False),
        ("", False),
    ],
)
def test_only_commands_with_spark_as_it_is_by_default_start_it(
    arguments: str, starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _starts(arguments, monkeypatch) == starts


def test_spark_is_not_started_ahead_where_the_environment_configures_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert not _starts("run a.properties", monkeypatch)


def _starts(arguments: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    started: list[str] = []
    monkeypatch.setattr(spark_ahead, "SparkAhead", started.append)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(spark_ahead, "_started", None)
    spark_ahead.start_for(arguments.split())
    return bool(started)
