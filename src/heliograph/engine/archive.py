"""An archive of Spark's classes (class data sharing), with which Spark starts in less than half the time.

    python -m heliograph.engine.archive

creates the archive for this Python environment and the Java in use, inside the environment. If one of them changes, the
archive is not used; nothing depends on it.
"""

import os
import shutil
import sys
import tempfile
import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_ENDS_WITHIN = 120.0


def java() -> str | None:
    """The Java that Spark will use, if there is one."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(f"{home}/bin/java" if home else "java")


@cache
def spark_home() -> Path:
    """The folder of PySpark, which is not imported for that."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("PySpark is not installed: install Heliograph with its dependencies")
    return Path(spec.origin).resolve().parent


def use_archive() -> list[str]:
    """The JVM options for the archive, if it exists. The JVM ignores it silently if it does not match."""
    path = archive_path()
    if path is None or not path.exists():
        return []
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:cds*=off"]


def archive_path() -> Path | None:
    """None without a Java, or where the path would have to be quoted."""
    java_path = java()
    if java_path is None:
        return None
    executable = Path(java_path).resolve()
    checksum = zlib.crc32(f"{executable} {executable.stat().st_mtime_ns}".encode())
    version = (spark_home() / "version.py").read_text().rpartition("=")[2].strip(" \n'\"")
    path = Path(sys.prefix, "share", "heliograph", f"spark-{version}-java-{checksum:08x}.jsa")
    return None if " " in str(path) else path


def create() -> Path | None:
    """Run a Spark job and archive the classes that it has loaded. None if that was not possible."""
    # Imported late: the engine imports this module.
    from heliograph.engine.spark import Engine

    path = archive_path()
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=path.parent)
    except OSError:
        return None
    with folder as name:
        made = Path(name, "classes.jsa")
        engine = Engine(1, jvm_options=[f"-XX:ArchiveClassesAtExit={made}", "-Xlog:cds*=off"])
        engine.start()
        engine.run_nothing()
        if engine.end_jvm(_ENDS_WITHIN) != 0 or not made.exists():
            return None
        made.replace(path)
    for other in path.parent.glob("spark-*.jsa"):
        if other != path:
            other.unlink()
    return path


if __name__ == "__main__":
    done = create()
    sys.stdout.write(
        f"heliograph: Spark's classes are at {done}\n" if done else "heliograph: no archive could be created\n"
    )
