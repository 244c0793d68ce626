"""The cache of one version of Kafka: its jars, and two files generated from them once for a faster start.

- `bootstrap.checkpoint`, which `kafka-storage format` writes into a new data directory and which is the same for
  every node of every cluster of that version. Copying it saves a JVM for each new broker.
- A class data archive, with which the JVM maps the broker's classes instead of parsing and verifying them: the
  broker is up in half the time. It is tied to one Java and one class path; a JVM that finds it unfit ignores it.

It does not run clusters.
"""

import logging
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from heliograph.sandbox import jars
from heliograph.sandbox.broker import (
    KRAFT_SINCE,
    common_settings,
    java_command,
    kraft_settings,
    telling_lines,
    version_numbers,
    write_properties,
)
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.java import Java, find_java
from heliograph.sandbox.ports import free_ports
from heliograph.sandbox.probe import brokers_known_to
from heliograph.sandbox.processes import Processes

log = logging.getLogger(__name__)

# Kafka's own artifacts bring no SLF4J binding, without which they log nothing. 4.x insists on log4j2 being there.
# Up to 3.x it is reload4j, in place of a Log4j 1.2 that cannot read the version number of a Java after 8.
_LOGGING_4 = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
_LOGGING_3 = "org.slf4j:slf4j-reload4j:1.7.36"
_ZOOKEEPER_2 = "org.apache.zookeeper:zookeeper:3.5.10"
_NOT_WANTED_BEFORE_4 = ("log4j:*", "*:slf4j-log4j12")


@dataclass(frozen=True)
class Distribution:
    """One version of Kafka, ready to run. `checkpoint` is None for a version that runs with ZooKeeper."""

    version: str
    java: Java
    jars: Path
    checkpoint: Path | None = None
    archive: Path | None = None

    @property
    def kraft(self) -> bool:
        return version_numbers(self.version) >= KRAFT_SINCE

    @property
    def classpath(self) -> str:
        return jars.classpath(self.jars)


def kafka_jars(version: str, artifact: str | None = None) -> Path:
    """The folder with the jars of an artifact of `org.apache.kafka`: the broker, unless another one is named.

    `connect-mirror` is MirrorMaker 2, `kafka-tools` has ProducerPerformance. A logging binding is among the jars.
    """
    numbers = version_numbers(version)
    if artifact is None:
        artifact = "kafka_2.13" if numbers >= (2, 4) else "kafka_2.12"
    if numbers >= (4,):
        return jars.fetch(f"org.apache.kafka:{artifact}:{version}", _LOGGING_4)
    # Kafka 2.0 to 2.5 bring a ZooKeeper client that misreads addresses as Java 14 and later writes them.
    newer_zookeeper = (_ZOOKEEPER_2,) if (2,) <= numbers < (2, 6) else ()
    wanted = (f"org.apache.kafka:{artifact}:{version}", _LOGGING_3, *newer_zookeeper)
    return jars.fetch(*wanted, exclude=_NOT_WANTED_BEFORE_4)


def distribution(version: str) -> Distribution:
    """Kafka of that version, fetched and made ready unless the cache has it already."""
    java, folder = find_java(), kafka_jars(version)
    if version_numbers(version) < KRAFT_SINCE:
        return Distribution(version, java, folder)
    checkpoint, archive = folder / "bootstrap.checkpoint", folder / f"classes-java-{java.version}.jsa"
    if not (checkpoint.exists() and archive.exists()):
        with jars.cache_lock(), jars.progress(f"preparing Kafka {version}, once") as bar:
            bar.add_task("", total=None)
            if not (checkpoint.exists() and archive.exists()):
                _prepare(Distribution(version, java, folder), checkpoint, archive)
    # An empty archive means that this Java cannot create one.
    usable = archive.exists() and archive.stat().st_size > 0
    return Distribution(version, java, folder, checkpoint, archive if usable else None)


def _prepare(kafka: Distribution, checkpoint: Path, archive: Path) -> None:
    with jars.workspace() as processes:
        folder = processes.folder
        client_port, controller_port = free_ports(2)
        settings = kraft_settings(1, {1: controller_port}, {"PLAINTEXT": ("PLAINTEXT", client_port)})
        write_properties(
            folder / "server.properties", common_settings(1) | settings | {"log.dirs": str(folder / "data")}
        )

        # An id that begins with a dash would be taken for an option.
        arguments = ["kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", "server.properties"]
        _run(processes, "format", _java(kafka, folder, arguments))
        if processes.wait("format", timeout=60) != 0:
            raise SandboxError(
                "\n".join([f"Kafka {kafka.version} could not format a data directory:", *_last_log_lines(folder)])
            )
        # A copy, as the broker below still needs the original.
        shutil.copyfile(folder / "data" / "bootstrap.checkpoint", folder / "checkpoint")
        os.replace(folder / "checkpoint", checkpoint)

        made = folder / "classes.jsa"
        flags = (f"-XX:ArchiveClassesAtExit={made}",)
        _run(processes, "broker", _java(kafka, folder, ["kafka.Kafka", "server.properties"], flags))
        deadline = time.monotonic() + 60
        while brokers_known_to(client_port) != {1}:
            if processes.exits()["broker"] is not None or time.monotonic() > deadline:
                log.warning(
                    "Kafka %s did not start, so its classes are not archived: %s",
                    kafka.version,
                    _last_log_lines(folder),
                )
                return
            time.sleep(0.1)
        processes.signal("broker", signal.SIGTERM)
        if processes.wait("broker", timeout=60) is None:
            log.warning("Kafka %s takes too long to archive its classes; brokers will start slower", kafka.version)
            return
        # Stays empty if this Java cannot create one.
        made.touch()
        os.replace(made, archive)


def _java(kafka: Distribution, folder: Path, main: list[str], flags: tuple[str, ...] = ()) -> list[str]:
    return java_command(kafka.java, kafka.classpath, main, version=kafka.version, folder=folder, flags=flags)


def _run(processes: Processes, name: str, argv: list[str]) -> None:
    processes.start(name, argv, cwd=processes.folder, log=processes.folder / "log")


def _last_log_lines(folder: Path) -> list[str]:
    return ["  " + line for line in telling_lines((folder / "log").read_text(errors="replace"))]
