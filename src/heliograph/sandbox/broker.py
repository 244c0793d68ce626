"""Settings, logging and command line of one broker, and the lines of its log that explain a failure.

It writes files and builds commands. It starts nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from heliograph.sandbox.java import Java
from heliograph.sandbox.ports import HOST
from heliograph.sandbox.private_files import write_private

KRAFT_SINCE = (3, 3)

_GARBAGE_COLLECTORS = {"serial": "-XX:+UseSerialGC", "g1": "-XX:+UseG1GC"}

_LEVELS = {"org.apache.kafka.common.config": "warn", "state.change.logger": "warn"}

_LOG4J1 = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka.server.KafkaConfig=WARN
log4j.logger.org.apache.kafka.common.config=WARN
log4j.logger.org.apache.zookeeper=WARN
log4j.logger.state.change.logger=WARN
"""


def version_numbers(version: str) -> tuple[int, ...]:
    """`4.3.1` as (4, 3, 1), for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def common_settings(brokers: int) -> dict[str, str]:
    """Settings for a small cluster that starts fast and needs few resources."""
    copies, in_sync = str(min(3, brokers)), "2" if brokers >= 3 else "1"
    return {
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        # The broker holds back the first rebalance of a group by 3 s otherwise.
        "group.initial.rebalance.delay.ms": "0",
        # A KRaft broker that was killed is not let in again before its session has ended, 9 s by default; then others
        # lead its partitions. If a busy machine stalls a single broker for so long, its partitions have no leader.
        "broker.session.timeout.ms": "4000" if brokers > 1 else "6000",
        "broker.heartbeat.interval.ms": "500",
        # Two indexes of 10 MB are preallocated for every active segment otherwise.
        "log.index.size.max.bytes": str(1024 * 1024),
        # 128 MB of heap are taken for the log cleaner otherwise, used or not.
        "log.cleaner.dedupe.buffer.size": str(2 * 1024 * 1024),
    }


def kraft_settings(
    node: int, controllers: Mapping[int, int], listeners: Mapping[str, tuple[str, int]]
) -> dict[str, str]:
    """Who the node is: a broker, and one of the `controllers` (node to port) as well if it is named there.

    `listeners` is name to security protocol and port; brokers talk to each other over PLAINTEXT.
    """
    everywhere = dict(listeners)
    if node in controllers:
        everywhere["CONTROLLER"] = ("PLAINTEXT", controllers[node])
    return {
        "process.roles": "broker,controller" if node in controllers else "broker",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(f"{voter}@{HOST}:{port}" for voter, port in controllers.items()),
        "controller.listener.names": "CONTROLLER",
        **_listener_settings(everywhere, listeners, {"CONTROLLER": "PLAINTEXT"}),
    }


def zookeeper_settings(node: int, zookeeper_port: int, listeners: Mapping[str, tuple[str, int]]) -> dict[str, str]:
    """Who the node is, for a broker from before KRaft."""
    return {
        "broker.id": str(node),
        "zookeeper.connect": f"{HOST}:{zookeeper_port}",
        **_listener_settings(listeners, listeners, {}),
        # Brokers are started together with their ZooKeeper and must have the patience to wait for it.
        "zookeeper.connection.timeout.ms": "30000",
        # A broker that was killed holds its place in ZooKeeper until its session has ended: 6 s by default.
        "zookeeper.session.timeout.ms": "4000",
    }


def zookeeper_server_settings(port: int, data: Path) -> dict[str, str]:
    return {
        "dataDir": str(data),
        "clientPort": str(port),
        "clientPortAddress": HOST,
        # Sessions end at a tick; with the default of 3 s that would be late.
        "tickTime": "1000",
        "maxClientCnxns": "0",
        # For `dump`, which lists the brokers with a session.
        "4lw.commands.whitelist": "*",
        # ZooKeeper 3.5 and later opens port 8080 for this otherwise.
        "admin.enableServer": "false",
    }


def advertised_listeners(listeners: Mapping[str, tuple[str, int]], other_ports: Mapping[str, int]) -> str:
    """The value of `advertised.listeners`. `other_ports`: of listeners that are not advertised at their own."""
    return ",".join(f"{name}://{HOST}:{other_ports.get(name, port)}" for name, (_, port) in listeners.items())


def _listener_settings(
    bound: Mapping[str, tuple[str, int]], advertised: Mapping[str, tuple[str, int]], also_known: Mapping[str, str]
) -> dict[str, str]:
    protocols = {**also_known, **{name: protocol for name, (protocol, _) in bound.items()}}
    return {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, (_, port) in bound.items()),
        "advertised.listeners": advertised_listeners(advertised, {}),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
    }


def write_properties(path: Path, settings: Mapping[str, str]) -> None:
    """A Java properties file: Latin-1, with a backslash to escape what would mean something. Only its owner can read
    it, as it may have passwords."""
    write_private(path, "".join(line + "\n" for line in property_lines(settings)).encode("ascii"))


def property_lines(settings: Mapping[str, str]) -> list[str]:
    return [f"{_escaped(key, '=: ')} = {_escaped(value)}" for key, value in settings.items()]


def _escaped(text: str, meaningful: str = "") -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    for character in meaningful:
        escaped = escaped.replace(character, "\\" + character)
    if escaped.startswith(" "):
        escaped = "\\" + escaped
    # In UTF-16 units, as Java counts them.
    return re.sub(r"[^\x00-\x7f]", lambda match: _utf16_escapes(match[0]), escaped)


def _utf16_escapes(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def log4j2(level: str, levels: Mapping[str, str]) -> str:
    """Logging to the console for Kafka from 4.0 on; `levels` are those of single loggers."""
    lines = [
        "status = error",
        "appender.out.type = Console",
        "appender.out.name = out",
        "appender.out.layout.type = PatternLayout",
        "appender.out.layout.pattern = [%d] %p %m (%c)%n",
        f"rootLogger.level = {level}",
        "rootLogger.appenderRef.out.ref = out",
    ]
    for number, (name, its_level) in enumerate(levels.items()):
        lines += [f"logger.l{number}.name = {name}", f"logger.l{number}.level = {its_level}"]
    return "\n".join([*lines, ""])


def logging_flags(version: str, folder: Path) -> list[str]:
    """Writes the logging settings this Kafka understands into the folder; returns the flags that point to them."""
    if version_numbers(version) >= (4,):
        path, text, flag = folder / "log4j2.properties", log4j2("info", _LEVELS), "-Dlog4j2.configurationFile="
    else:
        path, text, flag = folder / "log4j.properties", _LOG4J1, "-Dlog4j.configuration="
    path.write_text(text)
    return [flag + path.absolute().as_uri()]


def java_command(
    java: Java,
    classpath: str,
    main: Iterable[str],
    *,
    version: str,
    folder: Path,
    heap_mb: int = 256,
    gc: str = "serial",
    fast_start: bool = False,
    archive: Path | None = None,
    flags: Sequence[str] = (),
) -> list[str]:
    """The command that runs a main class of Kafka: `main` is the class and its arguments."""
    command = [java.executable, f"-Xms{min(64, heap_mb)}m", f"-Xmx{heap_mb}m", _GARBAGE_COLLECTORS[gc]]
    # No memory-mapped file in the system's temporary directory for tools that watch JVMs.
    command.append("-XX:-UsePerfData")
    command.append("-Djava.awt.headless=true")
    if fast_start:
        # The quick compiler only: half the CPU time of a start, and far from full speed later.
        command.append("-XX:TieredStopAtLevel=1")
    if archive is not None:
        command.append(f"-XX:SharedArchiveFile={archive}")
    if version_numbers(version) < (3,):
        # Kafka 1.1 unmaps its index files by reflection, and old ZooKeepers look for Log4j classes that reload4j
        # does not have.
        command += ["--add-opens", "java.base/java.nio=ALL-UNNAMED", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"]
    if version_numbers(version) < KRAFT_SINCE:
        command.append("-Dzookeeper.jmx.log4j.disable=true")
    return [*command, *logging_flags(version, folder), *flags, "-cp", classpath, *main]


def log_since(path: Path, offset: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def telling_lines(text: str, count: int = 12) -> list[str]:
    """The last lines of a log that say what went wrong, or its last lines if none does."""
    lines = text.splitlines()
    telling = [line for line in lines if re.search(r"\b(ERROR|FATAL)\b|Exception|^Caused by|^Error", line)]
    return [line[:300] for line in (telling or lines)[-count:]]
