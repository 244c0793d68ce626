"""The command `heliograph` as a process of its own, in tests."""

import os
import subprocess
import sys
from pathlib import Path


def heliograph(*arguments: object, timeout: float = 120.0, **env: str) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(
        [sys.executable, "-m", "heliograph", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=os.environ | env,
        check=False,
    )


def start(*arguments: object, log: Path) -> subprocess.Popen[bytes]:
    """Start and leave running; its own process group, so that all of it can be killed."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "heliograph", *map(str, arguments)],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
