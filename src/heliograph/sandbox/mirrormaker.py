"""MirrorMaker 2 of the same release as the brokers, to run beside Heliograph: in benchmarks and tests."""

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
    """Dedicated mode from a file, beside which lies all that it writes. Logs warnings, and what `levels` ask for."""
    logging = properties.with_suffix(".log4j2.properties")
    logging.write_text(log4j2("warn", levels or {}))
    return java_command(
        find_java(),
        mirror_maker_classpath(),
        ["org.apache.kafka.connect.mirror.MirrorMaker", str(properties)],
        version=DEFAULT_VERSION,
        folder=properties.parent,
        heap_mb=heap_mb,
        gc=gc,
        flags=(*flags, f"-Djava.io.tmpdir={properties.parent}", f"-Dlog4j2.configurationFile={logging.as_uri()}"),
    )
