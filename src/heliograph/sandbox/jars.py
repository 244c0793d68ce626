"""Downloads Java artifacts with their dependencies from Maven Central into a per-user cache.

PySpark's Ivy resolves them, so only Java and PySpark are needed. A folder of the cache is complete if it exists.
Nothing is ever updated or removed: a new version is a new folder. `$HELIOGRAPH_IVY_SETTINGS` may name an Ivy settings
file, for example for a mirror of Maven Central.
"""

import fcntl
import hashlib
import importlib.util
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.java import find_java
from heliograph.sandbox.processes import Processes

log = logging.getLogger(__name__)

_WORKSPACE = "unfinished-"


def cache_directory() -> Path:
    """`$HELIOGRAPH_CACHE`, else `heliograph` in the user's cache directory."""
    if chosen := os.environ.get("HELIOGRAPH_CACHE"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "heliograph"


def fetch(*coordinates: str, exclude: Sequence[str] = ()) -> Path:
    """The folder with the jars of some artifacts and all they need; downloads it unless the cache has it.

    Coordinates are `group:artifact:version`; `exclude` names `group:artifact`s to leave out, `*` meaning any.
    """
    module = _ivy_module(coordinates, exclude)
    _, artifact, version = coordinates[0].split(":")
    digest = hashlib.sha256(module.encode()).hexdigest()[:8]
    folder = cache_directory() / "jars" / f"{artifact}-{version}-{digest}"
    if not folder.is_dir():
        with cache_lock():
            if not folder.is_dir():
                _download(module, coordinates, folder)
    return folder


def classpath(*folders: Path) -> str:
    """A Java class path of all jars of the folders, always in the same order: a class archive is tied to it."""
    return os.pathsep.join(str(jar) for folder in folders for jar in sorted(folder.glob("*.jar")))


@contextmanager
def cache_lock() -> Iterator[None]:
    """Holds the cache for this process. The system lets go of it however the process ends."""
    cache = cache_directory()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        holder = os.open(cache / "lock", os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise SandboxError(f"cannot write to the cache: {error} (set HELIOGRAPH_CACHE to use another)") from error
    try:
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("waiting for another process to finish with %s", cache)
            fcntl.flock(holder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(holder)


@contextmanager
def workspace() -> Iterator[Processes]:
    """Processes with a folder inside the cache, from which a finished thing can be renamed into its place.

    Only for the holder of the lock, who may therefore clear away what a machine that was switched off has left.
    """
    for abandoned in cache_directory().glob(_WORKSPACE + "*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with Processes(within=cache_directory(), prefix=_WORKSPACE) as processes:
        yield processes


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A progress bar on a terminal, one log line elsewhere. The caller adds the tasks."""
    if not sys.stderr.isatty():
        log.info("%s", title)
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        yield bar


def _download(module: str, coordinates: Sequence[str], folder: Path) -> None:
    java, ivy = find_java(), _ivy_jar()
    with workspace() as processes:
        work = processes.folder
        (work / "ivy.xml").write_text(module)
        # Ivy's own cache holds only complete files, and saves downloads that several versions share.
        argv = [java.executable, "-jar", str(ivy), "-cache", str(cache_directory() / "ivy"), "-ivy", "ivy.xml"]
        argv += ["-confs", "default", "-retrieve", "jars/[artifact]-[revision](-[classifier]).[ext]"]
        if settings := os.environ.get("HELIOGRAPH_IVY_SETTINGS"):
            argv += ["-settings", str(Path(settings).expanduser().absolute())]
        processes.start("ivy", argv, cwd=work, log=work / "ivy.log")
        with progress(f"fetching {coordinates[0]}") as bar:
            task = bar.add_task("", total=None)
            while (status := processes.exits()["ivy"]) is None:
                # First Ivy reads all the descriptions ("found"), then it gets the files.
                output = (work / "ivy.log").read_text(errors="replace")
                resolved, fetched = output.count("\tfound "), output.count("[SUCCESSFUL ]")
                bar.update(task, total=resolved if fetched else None, completed=fetched or resolved)
                time.sleep(0.1)
        if status != 0 or not any(work.glob("jars/*.jar")):
            reason = _reason((work / "ivy.log").read_text(errors="replace")) or f"Ivy ended with status {status}"
            raise SandboxError(f"could not fetch {coordinates[0]}: {reason}; nothing was left half-done")
        folder.parent.mkdir(exist_ok=True)
        (work / "jars").rename(folder)


def _reason(output: str) -> str | None:
    # A server that cannot be reached makes everything "not found" as well, so that comes first.
    for pattern in (r"Server access error at (.*)", r":: (\S+#\S+: .+)", r"\[FAILED +\] (.+)", r"(.*Exception.*)"):
        if match := re.search(pattern, output):
            return match[1].strip()
    return None


def _ivy_jar() -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    for place in (pyspark.submodule_search_locations or []) if pyspark else []:
        for jar in sorted(Path(place, "jars").glob("ivy-2.*.jar")):
            return jar
    raise SandboxError("the sandbox fetches Kafka with the Ivy that comes with PySpark, and found no PySpark")


def _ivy_module(coordinates: Sequence[str], exclude: Sequence[str]) -> str:
    lines = ['<ivy-module version="2.0">', '  <info organisation="heliograph" module="sandbox"/>']
    lines += ['  <configurations><conf name="default"/></configurations>', "  <dependencies>"]
    for coordinate in coordinates:
        if coordinate.count(":") != 2:
            raise SandboxError(f"{coordinate!r} is not of the form group:artifact:version")
        group, artifact, version = map(quoteattr, coordinate.split(":"))
        lines.append(f'    <dependency org={group} name={artifact} rev={version} conf="default->default"/>')
    for pattern in exclude:
        group, artifact = map(quoteattr, pattern.split(":"))
        lines.append(f"    <exclude org={group} module={artifact}/>")
    return "\n".join([*lines, "  </dependencies>", "</ivy-module>", ""])
