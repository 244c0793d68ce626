"""The real MirrorMaker 2, for tests: its process, and its client library in a JVM of its own."""

import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyspark.find_spark_home import _find_spark_home

from heliograph.sandbox import DEFAULT_VERSION, classpath, kafka_jars
from heliograph.sandbox.broker import java_command
from heliograph.sandbox.java import find_java

_LOG4J2 = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class MirrorMaker:
    """MM2's dedicated mode from a file."""

    def __init__(self, properties: Path) -> None:
        self._folder = properties.parent
        self.log = properties.with_suffix(".mm2.log")
        log4j2 = properties.with_suffix(".log4j2.properties")
        log4j2.write_text(_LOG4J2)
        flags = (f"-Djava.io.tmpdir={self._folder}", f"-Dlog4j2.configurationFile={log4j2.as_uri()}")
        command = java_command(
            find_java(),
            classpath(kafka_jars(DEFAULT_VERSION, "connect-mirror")),
            ["org.apache.kafka.connect.mirror.MirrorMaker", str(properties)],
            version=DEFAULT_VERSION,
            folder=self._folder,
            heap_mb=512,
            gc="serial",
            flags=flags,
        )
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self._folder)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """In order: it commits its offsets."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def mirror_maker(properties: Path) -> Iterator[MirrorMaker]:
    running = MirrorMaker(properties)
    try:
        yield running
    finally:
        running.kill()


class JavaClient:
    """MM2's `RemoteClusterUtils` of the released jar, called from here."""

    def __init__(self) -> None:
        jars = classpath(kafka_jars(DEFAULT_VERSION, "connect-mirror"))
        (py4j,) = Path(_find_spark_home(), "jars").glob("py4j-*.jar")
        port = launch_gateway(
            jarpath=str(py4j), classpath=jars, java_path=find_java().executable, die_on_exit=True, javaopts=["-Xmx128m"]
        )
        self._gateway: Any = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self._jvm = self._gateway.jvm
        self._utils = self._jvm.org.apache.kafka.connect.mirror.RemoteClusterUtils

    def __enter__(self) -> "JavaClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.shutdown()

    def heartbeat_topics(self, bootstrap: str) -> set[str]:
        return set(self._utils.heartbeatTopics(self._settings(bootstrap)))

    def checkpoint_topics(self, bootstrap: str) -> set[str]:
        return set(self._utils.checkpointTopics(self._settings(bootstrap)))

    def upstream_clusters(self, bootstrap: str) -> set[str]:
        return set(self._utils.upstreamClusters(self._settings(bootstrap)))

    def replication_hops(self, bootstrap: str, alias: str) -> int:
        return int(self._utils.replicationHops(self._settings(bootstrap), alias))

    def translate_offsets(self, bootstrap: str, alias: str, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        timeout = self._jvm.java.time.Duration.ofSeconds(30)
        found: Mapping[Any, Any] = self._utils.translateOffsets(self._settings(bootstrap), alias, group, timeout)
        return {(at.topic(), at.partition()): (one.offset(), one.metadata()) for at, one in found.items()}

    def _settings(self, bootstrap: str) -> Any:
        settings = self._jvm.java.util.HashMap()
        settings.put("bootstrap.servers", bootstrap)
        return settings


def until(what: Any, seconds: float = 60.0, every: float = 0.2) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(every)
