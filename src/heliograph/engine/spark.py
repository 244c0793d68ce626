"""One Spark application for all leases of a deployment: start it, run leases on it, stop it.

Works as the parent of the JVM (`heliograph run`) and as its child (`spark-submit`). Settings that the user gives,
here or to spark-submit, override ours.
"""

import ctypes
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from heliograph.copy.work import Outcome, Work
from heliograph.engine import spark_ahead, worker_daemon
from heliograph.engine.archive import java, use_archive
from heliograph.engine.daemon_ahead import end_ahead, start_ahead
from heliograph.engine.lease import LeaseTask
from heliograph.engine.sealing import Seal
from heliograph.engine.secured_channels import ENCRYPTED, NoSecret, secured_channels
from heliograph.engine.spark_ahead import SparkAhead

log = logging.getLogger(__name__)
jvm_log = logging.getLogger("heliograph.spark")

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_SECRET = "PYSPARK_GATEWAY_SECRET"
_DAEMON = "spark.python.daemon.module"
_PR_SET_PDEATHSIG = 1
_SAYS_WHY_WITHIN = 1.0
_LONGEST_SOCKET_FOLDER = 55  # a socket's path has at most 107 characters, and Spark's names for it some 45
_NOISE = ("WARNING: Using incubator modules", "WARNING: package sun.security.action not in java.base")
# What a lease logs, in the format of `heliograph.engine.lease`: level and logger are preserved.
_FROM_A_LEASE = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (heliograph\.\S+) (\S+) (.*)")

_last_lines: deque[str] = deque(maxlen=3)  # of the JVM's stderr


class SparkFailed(Exception):
    """Spark cannot be used. The message is one line."""


class Engine:
    def __init__(
        self,
        slots: int,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] | None = None,
        secure: bool | None = None,
    ) -> None:
        self._slots = slots
        self._secure = secure
        self._jvm_options = jvm_options
        self._master = master
        self._conf = dict(conf or {})
        self._context: SparkContext | None = None
        self._folder: str | None = None
        self._ahead: SparkAhead | None = None
        self.daemon_ahead: subprocess.Popen[bytes] | None = None
        self._seal = Seal()
        self._submitted = _SUBMITTED in os.environ
        if self._submitted:
            # Not in `start`: the kernel binds this to the calling thread, which must not end before the process.
            _die_with_parent()

    def start(self) -> None:
        """Takes several seconds: call it from a thread. Raises SparkFailed."""
        try:
            self._start()
        except (PySparkException, Py4JError) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            reasons = "; ".join([*lines[:1], *_last_lines])
            raise SparkFailed(f"Spark does not start: {reasons}") from error

    def _start(self) -> None:
        submitted = self._submitted
        if submitted:
            # Only a live gateway knows spark-submit's options; a SparkConf that was created before would hide them.
            SparkContext._ensure_initialized()
            conf = SparkConf()
        else:
            _require_java()
            self._ahead = spark_ahead.take()
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            conf = SparkConf(loadDefaults=False)
        for key, value in self._conf.items():
            conf.set(key, value)
        if self._master:
            conf.setMaster(self._master)
        conf.setIfMissing("spark.master", f"local[{self._slots},4]")
        master = conf.get("spark.master", "")
        try:
            secured = secured_channels(master, dict(conf.getAll()), self._secure)
        except NoSecret as error:
            raise SparkFailed(str(error)) from None
        for key, value in {**self._defaults(submitted, master.startswith("local")), **secured}.items():
            conf.setIfMissing(key, value)
        if conf.get("spark.speculation", "false") == "true":
            raise SparkFailed("spark.speculation must be false: it would run every lease twice")
        self._start_daemon_ahead(conf)
        if self._ahead is not None:
            gateway = _connect(self._ahead)
        else:
            gateway = None if submitted else launch_gateway(conf, {"stderr": _to_our_log()})  # type: ignore[no-untyped-call]
        self._context = SparkContext(conf=conf, gateway=gateway)
        # PySpark prints a stack trace when the JVM closes this server's connection first, as it does on stop.
        self._context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
        log.info("Spark %s is up, master %s", self._context.version, self._context.master)
        if not master.startswith("local") and self._context.getConf().get(ENCRYPTED, "false") != "true":
            log.warning(
                "%s is not set: what leases need to log in to the clusters crosses the network to %s unencrypted; see "
                "heliograph.spark.secure",
                ENCRYPTED,
                master,
            )

    def _start_daemon_ahead(self, conf: SparkConf) -> None:
        """Where Spark's JVM would start the same: loading Python's modules takes as long as starting the JVM."""
        path = conf.get(f"spark.executorEnv.{worker_daemon.SOCKET}")
        same_python = os.environ.get("PYSPARK_PYTHON") == sys.executable and not conf.contains("spark.pyspark.python")
        if path and same_python and conf.get(_DAEMON) == worker_daemon.__name__:
            try:
                self.daemon_ahead = start_ahead(Path(path))
            except OSError as error:  # the path is too long for a socket
                log.debug("Spark's worker daemon is not started ahead: %s", error)

    def _defaults(self, submitted: bool, on_this_machine: bool) -> dict[str, str]:
        folder = self._folder = self._ahead.folder if self._ahead is not None else spark_ahead.own_folder()
        defaults = {
            "spark.app.name": "heliograph",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.scheduler.mode": "FAIR",
            # One crashed worker must not fail the lease for good: up to 4 attempts, as on a cluster.
            "spark.task.maxFailures": "4",
            "spark.executorEnv.PYTHONUNBUFFERED": "1",
        }
        if on_this_machine:
            if len(folder) <= _LONGEST_SOCKET_FOLDER:
                defaults |= {
                    # TCP between JVM and workers costs 40 ms per lease (delayed acknowledgements).
                    "spark.python.unix.domain.socket.enabled": "true",
                    "spark.python.unix.domain.socket.dir": folder,
                }
            defaults |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.local.dir": folder,
            }
        if on_this_machine and not submitted:  # the daemon does not see what spark-submit ships to workers
            defaults |= {
                _DAEMON: worker_daemon.__name__,
                f"spark.executorEnv.{worker_daemon.SOCKET}": str(Path(folder, "daemon.socket")),
            }
        if not submitted:
            more = use_archive() if self._jvm_options is None else self._jvm_options
            defaults |= {
                "spark.driver.memory": spark_ahead.MEMORY,
                "spark.driver.extraJavaOptions": " ".join([*spark_ahead.jvm_options(folder), *more]),
            }
        return defaults

    def run(self, work: Work) -> Outcome:
        """Run one lease. Blocks until it has ended: call it from a thread of its own."""
        assert self._context is not None
        self._context.setJobGroup(work.lease, f"{work.flow.name}: {len(work.partitions)} partitions")
        task = LeaseTask(self._seal)
        (outcome,) = self._context.parallelize([self._seal.close(work)], 1).mapPartitions(task).collect()
        assert isinstance(outcome, Outcome)
        return outcome

    def run_nothing(self) -> None:
        """Run an empty task, in the way that leases are run."""
        assert self._context is not None
        self._context.parallelize([0], 1).mapPartitions(list).collect()

    def cancel(self, lease: str) -> None:
        """Make Spark kill a lease that does not end by itself. It takes seconds to reach the worker."""
        if self._context is not None:
            self._context.cancelJobGroup(lease)

    @property
    def alive(self) -> bool:
        """Whether the JVM runs: nothing else would show that it was killed."""
        process = self._process
        return process is None or process.poll() is None

    @property
    def _process(self) -> "subprocess.Popen[bytes] | None":
        """The JVM, if it is our child."""
        if self._ahead is not None:
            return self._ahead.jvm
        process: subprocess.Popen[bytes] | None = getattr(getattr(self._context, "_gateway", None), "proc", None)
        return process

    def stop(self) -> None:
        if self._context is not None and self.alive:
            self._context.stop()
        elif self._ahead is not None:  # it is still starting
            self._ahead.kill()
        self._context = None
        self._clean_up()

    def end_jvm(self, within: float) -> int:
        """Stop, and wait until the JVM has ended, which it does when its stdin is closed. Returns its exit status."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        self.stop()
        process.stdin.close()
        return process.wait(within)

    def kill(self) -> None:
        """Kill a JVM that does not stop in time: its workers end with it."""
        process = self._process
        if process is not None:
            process.kill()
        self._clean_up()

    def _clean_up(self) -> None:
        if self.daemon_ahead is not None:
            end_ahead(self.daemon_ahead)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _require_java() -> None:
    if java() is None:
        home = os.environ.get("JAVA_HOME")
        where = f"JAVA_HOME is {home}, where there is none" if home else "there is none on the path"
        raise SparkFailed(f"Spark needs Java 17 or newer, and {where}")


def _die_with_parent() -> None:
    """End with the JVM under spark-submit: if it is killed, nothing else would end this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _connect(ahead: SparkAhead) -> JavaGateway:
    assert ahead.jvm.stderr is not None
    logging_ = _start_logging(ahead.jvm.stderr)
    found = ahead.gateway()
    if found is None:
        logging_.join(_SAYS_WHY_WITHIN)
        raise SparkFailed(f"Spark does not start: {'; '.join(['its JVM has ended', *_last_lines])}")
    # As spark-submit says it: only the call below is to know.
    os.environ[_SUBMITTED], os.environ[_SECRET] = str(found[0]), found[1]
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ[_SUBMITTED], os.environ[_SECRET]


def _to_our_log() -> IO[str]:
    """A file for the JVM's stderr: what Spark and its workers print goes to our log."""
    read, write = os.pipe()
    _start_logging(os.fdopen(read, "rb"))
    return os.fdopen(write, "w")


def _start_logging(stderr: IO[bytes]) -> threading.Thread:
    thread = threading.Thread(target=_forward, args=(stderr,), name="spark-stderr", daemon=True)
    thread.start()
    return thread


def _forward(stderr: IO[bytes]) -> None:
    with stderr:
        for line in stderr:
            text = line.decode(errors="replace").rstrip()
            if (ours := _FROM_A_LEASE.fullmatch(text)) is not None:
                level, name, flow, message = ours.groups()
                logging.getLogger(name).log(logging.getLevelNamesMapping()[level], "%s", message, extra={"flow": flow})
            elif text and not text.startswith(_NOISE):
                _last_lines.append(text)
                jvm_log.debug("%s", text)
