"""Finds the Java that runs the brokers: `$JAVA_HOME` first, then the PATH.

It does not install Java, and it starts no JVM where the JDK's own `release` file answers.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from heliograph.sandbox.errors import SandboxError

# Kafka 4 brokers are compiled for Java 17; the older ones run on it as well.
OLDEST_JAVA = 17


@dataclass(frozen=True)
class Java:
    executable: str
    version: str


def find_java() -> Java:
    """The Java to run. Raises SandboxError if there is none, or if it is too old."""
    home = os.environ.get("JAVA_HOME")
    executable = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if executable is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no `java` on the PATH"
        raise SandboxError(f"the sandbox needs Java {OLDEST_JAVA} or newer, and {where}")
    version = _version_in_release_file(executable) or _version_printed(executable)
    if _major(version) < OLDEST_JAVA:
        raise SandboxError(f"the sandbox needs Java {OLDEST_JAVA} or newer, and {executable} is Java {version}")
    return Java(executable, version)


def _version_in_release_file(executable: str) -> str | None:
    release = Path(executable).resolve().parent.parent / "release"
    try:
        match = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
    except OSError:
        return None
    return match[1] if match else None


def _version_printed(executable: str) -> str:
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"{executable} does not run: {error}") from error
    match = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    if match is None:
        raise SandboxError(f"{executable} -version prints no version")
    return match[1]


def _major(version: str) -> int:
    # Java 8 calls itself 1.8.0_392; everything since calls itself 11.0.2, 17.0.15, 25-ea.
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else 0
