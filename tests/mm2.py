"""The real MirrorMaker 2, for tests: its process, and its client library in a separate JVM."""

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyspark.find_spark_home import _find_spark_home

from heliograph.sandbox.broker import log4j2
from heliograph.sandbox.java import find_java
from heliograph.sandbox.mirrormaker import mirror_maker_classpath, mirror_maker_command
from waiting import PATIENCE

SOON_UP = ("-XX:TieredStopAtLevel=1",)  # for processes that do not run for long


class MirrorMaker:
    """MM2's dedicated mode from a file."""

    def __init__(self, properties: Path) -> None:
        self.log = properties.with_suffix(".mm2.log")
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                mirror_maker_command(properties, heap_mb=512, flags=SOON_UP),
                stdout=output,
                stderr=output,
                cwd=properties.parent,
            )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=PATIENCE)

    def stop(self) -> None:
        """Orderly: it commits its offsets."""
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


class MirrorMakers:
    """MM2's dedicated mode for one file after the other, in a JVM that starts once. It does what MM2's `main` does."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "mm2.log"
        logging = folder / "log4j2.properties"
        logging.write_text(log4j2("warn", {}))
        flags = ("-Xmx768m", *SOON_UP, f"-Dlog4j2.configurationFile={logging.as_uri()}", f"-Djava.io.tmpdir={folder}")
        self._gateway = _gateway(flags, self.log.open("a", buffering=1))

    def __enter__(self) -> "MirrorMakers":
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.shutdown()

    @contextmanager
    def running(self, properties: Path) -> Iterator[None]:
        """Raises Py4JJavaError if MM2 refuses the file."""
        jvm = self._gateway.jvm
        utils = jvm.org.apache.kafka.common.utils.Utils
        settings = utils.propsToStringMap(utils.loadProps(str(properties)))
        mirror_maker = jvm.org.apache.kafka.connect.mirror.MirrorMaker(settings)
        mirror_maker.start()
        try:
            yield
        finally:
            mirror_maker.stop()


def _gateway(flags: Sequence[str], output: IO[str] | None = None) -> Any:
    """A JVM with MM2's classes, which ends with this process."""
    (py4j,) = Path(_find_spark_home(), "jars").glob("py4j-*.jar")
    port = launch_gateway(
        jarpath=str(py4j),
        classpath=mirror_maker_classpath(),
        java_path=find_java().executable,
        die_on_exit=True,
        javaopts=list(flags),
        redirect_stdout=output,
        redirect_stderr=output,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))


class JavaClient:
    """Calls `RemoteClusterUtils` of MM2's released jar."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self._gateway = _gateway(["-Xmx128m", *flags])
        self._jvm = self._gateway.jvm
        self._utils = self._jvm.org.apache.kafka.connect.mirror.RemoteClusterUtils

    def __enter__(self) -> "JavaClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.shutdown()

    def topics(self, settings: Mapping[str, str]) -> set[str]:
        """As Kafka's admin client lists them. Raises Py4JJavaError if it cannot connect."""
        admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(dict(settings))
        try:
            return set(admin.listTopics().names().get())
        finally:
            admin.close()

    def connector_config(self, settings: Mapping[str, str], source: str, target: str) -> dict[str, str]:
        """What MM2's driver makes of a file for its source connector."""
        mirror = self._jvm.org.apache.kafka.connect.mirror
        driver = mirror.MirrorMakerConfig(dict(settings))
        connector = self._jvm.java.lang.Class.forName("org.apache.kafka.connect.mirror.MirrorSourceConnector")
        return dict(driver.connectorBaseConfig(mirror.SourceAndTarget(source, target), connector))

    def policy(self, config: Mapping[str, str]) -> Any:
        """The replication policy that a connector with this config has."""
        name = config.get("replication.policy.class", "org.apache.kafka.connect.mirror.DefaultReplicationPolicy")
        policy = self._jvm.java.lang.Class.forName(name).newInstance()
        policy.configure(dict(config))
        return policy

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
        offsets: Mapping[Any, Any] = self._utils.translateOffsets(self._settings(bootstrap), alias, group, timeout)
        return {(at.topic(), at.partition()): (offset.offset(), offset.metadata()) for at, offset in offsets.items()}

    def _settings(self, bootstrap: str) -> Any:
        settings = self._jvm.java.util.HashMap()
        settings.put("bootstrap.servers", bootstrap)
        return settings
