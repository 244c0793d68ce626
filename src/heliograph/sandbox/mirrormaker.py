"""MirrorMaker 2 of the same release as the brokers, for benchmarks and tests: in dedicated mode, or in a Connect
worker."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from heliograph.sandbox.broker import java_command, log4j2
from heliograph.sandbox.distribution import kafka_jars
from heliograph.sandbox.jars import classpath
from heliograph.sandbox.java import find_java
from heliograph.sandbox.spec import DEFAULT_VERSION


def mirror_maker_classpath() -> str:
    return classpath(kafka_jars(DEFAULT_VERSION, "connect-mirror"))


def mirror_maker_command(
    properties: Path,
    *,
    heap_mb: int,
    gc: str = "serial",
    flags: Sequence[str] = (),
    levels: Mapping[str, str] | None = None,
) -> list[str]:
    """Dedicated mode with a file; its output is next to the file. Logs warnings, and more for loggers in `levels`.

    For secured clusters the file has their `client_settings`, and `flags` has the sandbox's `client_flags`.
    """
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    return _command(main, properties, heap_mb, gc, flags, levels or {})


def connect_worker_command(properties: Path, *, heap_mb: int, flags: Sequence[str] = ()) -> list[str]:
    """A distributed Connect worker that has MirrorMaker 2's connectors."""
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    return _command(main, properties, heap_mb, "serial", flags, {})


def _command(
    main: str, properties: Path, heap_mb: int, gc: str, flags: Sequence[str], levels: Mapping[str, str]
) -> list[str]:
    logging = properties.with_suffix(".log4j2.properties")
    logging.write_text(log4j2("warn", levels))
    return java_command(
        find_java(),
        mirror_maker_classpath(),
        [main, str(properties)],
        version=DEFAULT_VERSION,
        folder=properties.parent,
        heap_mb=heap_mb,
        gc=gc,
        flags=(*flags, f"-Djava.io.tmpdir={properties.parent}", f"-Dlog4j2.configurationFile={logging.as_uri()}"),
    )
