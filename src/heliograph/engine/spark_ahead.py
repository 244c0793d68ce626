"""Spark's JVM, started ahead: `heliograph run` and `serve` start it before they load their own modules.

Only where it would be the same whatever the files say: on this machine, and without the user's settings for Spark.
Spark's scripts are left out: they start another JVM first, which only composes the command that is given here. The JVM
ends when its standard input is closed, so it does not outlive this process. No module that is imported here takes
long to load.
"""

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from heliograph.engine.archive import java, spark_home, use_archive

MEMORY = "512m"
_COMMANDS = ("run", "serve")
_OPTIONS = ("--help", "--plan", "--master", "--conf")  # with one of them, Spark is not started or is another
_VARIABLES = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")  # Spark's scripts heed them
# Spark's own list, JavaModuleOptions, without what vectors, Kerberos and SQL need.
_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
_MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)
_LOOKS_EVERY = 0.01

_started: "SparkAhead | None" = None  # and not taken


class SparkAhead:
    def __init__(self, java_path: str) -> None:
        self.folder = own_folder()
        self._gateway = Path(self.folder, "gateway")
        home = spark_home()
        # The class archive is tied to the class path: this is the one that Spark's scripts compose.
        jars = [home / "conf", *home.glob("jars/slf4j-api-*.jar"), home / "jars" / "*"]
        self.jvm = subprocess.Popen(
            [
                java_path,
                *("-cp", os.pathsep.join(map(str, jars)), f"-Xmx{MEMORY}"),
                *jvm_options(self.folder),
                *use_archive(),
                *_MODULE_OPTIONS,
                "org.apache.spark.api.python.PythonGatewayServer",
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"SPARK_HOME": str(home), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._gateway)},
            preexec_fn=_ignore_ctrl_c,  # safe: there are no threads yet
        )

    def gateway(self) -> tuple[int, str] | None:
        """The port at which the JVM can be reached from Python, and its secret. None if the JVM has ended."""
        while not self._gateway.exists():
            if self.jvm.poll() is not None:
                return None
            time.sleep(_LOOKS_EVERY)
        content = self._gateway.read_bytes()
        self._gateway.unlink()
        port, length = struct.unpack_from(">ii", content)
        return port, content[8 : 8 + length].decode()

    def kill(self) -> None:
        self.jvm.kill()
        self.jvm.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_for(arguments: Sequence[str]) -> None:
    """Starts Spark if the command with these arguments will need it."""
    global _started
    if not arguments or arguments[0] not in _COMMANDS or any(text.startswith(_OPTIONS) for text in arguments):
        return
    is_configured = any(name.startswith(_VARIABLES) for name in os.environ) or Path(spark_home(), "conf").exists()
    java_path = java()
    if not is_configured and java_path is not None:
        signal.signal(signal.SIGTERM, _end_and_terminate)
        with suppress(OSError):  # the start that follows says what is missing
            _started = SparkAhead(java_path)


def take() -> SparkAhead | None:
    """What was started, for the caller to end it."""
    global _started
    taken, _started = _started, None
    return taken


def end() -> None:
    """Unless somebody has taken it."""
    if (started := take()) is not None:
        started.kill()


def _end_and_terminate(number: int, _frame: FrameType | None) -> None:
    """While modules are loaded. A JVM that somebody has taken meanwhile ends when its standard input is closed."""
    end()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise SystemExit(128 + number)  # in a container, the first process is not ended by its own signals


def _ignore_ctrl_c() -> None:
    """In a terminal it is for the driver only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def jvm_options(folder: str) -> list[str]:
    return [
        # The driver only schedules: optimizing compilers and collectors would not pay off.
        *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xss1m"),
        f"-Djava.io.tmpdir={folder}",
        f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}",
    ]


def own_folder() -> str:
    """A temporary directory for Spark's files, named after this process. Deletes those of runs that were killed."""
    for path in Path(tempfile.gettempdir()).glob("heliograph-run-*-*"):
        owner = path.name.split("-")[2]
        if owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"heliograph-run-{os.getpid()}-")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
