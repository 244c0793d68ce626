"""Plays the schedules of `schedules.py` in a process where sets of strings have one order: the same each time."""

import os
import subprocess
import sys
from pathlib import Path


def test_no_schedule_loses_repeats_or_mistranslates_a_record() -> None:
    played = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).with_name("schedules.py"))],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stdout[-20_000:]
    assert "1 passed" in played.stdout
