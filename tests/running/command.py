"""The command `heliograph` as a separate process, for tests."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from heliograph.cli import app
from logs import PATIENCE


def heliograph(*arguments: object, timeout: float = PATIENCE, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "heliograph", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=os.environ | env,
        check=False,
    )


def program_said(program: str | Path, *arguments: str) -> str:
    """The output of another Python program, which must succeed."""
    done = subprocess.run(
        [sys.executable, program, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | {"FAST_START": "1"},  # for the brokers of a benchmark
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_process(*arguments: object) -> Result:
    """Runs a command that starts no process in this one, as on a terminal of 80 columns."""
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "80"})


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait(timeout=PATIENCE)


def start(*arguments: object, log: Path, **env: str) -> subprocess.Popen[bytes]:
    """Starts a command in its own process group, so that all its processes can be killed."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "heliograph", *map(str, arguments)],
            stdout=output,
            stderr=output,
            env=os.environ | env,
            start_new_session=True,
        )
