"""A standalone Spark: one master and two workers, as processes of their own."""

import contextlib
import signal
import socket
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import psutil
import pyspark

from fault_runs.supervised import MARK, marked
from heliograph.sandbox.ports import HOST, free_ports
from heliograph.sandbox.processes import Processes

WORKERS = 2
MASTER = "master"
_STARTS_WITHIN = 60.0
_SPARK = Path(pyspark.__file__).parent


class StandaloneSpark:
    """`mark` is in the environment of its processes, and of the executors that they start."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.mark = uuid.uuid4().hex
        self._port, self._web_port, *self._worker_ports = free_ports(2 + WORKERS)
        self._environment = {**environment, MARK: self.mark, "SPARK_DAEMON_MEMORY": "128m", "SPARK_HOME": str(_SPARK)}
        self._processes = Processes(folder=folder, remove=False)
        for name in self.names:
            self.start(name)

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self._port}"

    @property
    def names(self) -> list[str]:
        return [MASTER, *(f"worker-{number}" for number in range(WORKERS))]

    def start(self, name: str) -> None:
        folder = self._processes.folder
        if name == MASTER:
            main = ["org.apache.spark.deploy.master.Master", "--host", HOST, "--port", str(self._port)]
            main += ["--webui-port", str(self._web_port)]
        else:
            web_port = self._worker_ports[int(name.rpartition("-")[2])]
            main = ["org.apache.spark.deploy.worker.Worker", "--host", HOST, "--webui-port", str(web_port)]
            main += ["--cores", "4", "--memory", "1g", "--work-dir", str(folder / "work"), self.url]
        settings = [f"{key}={value}" for key, value in self._environment.items()]
        command = ["/usr/bin/env", *settings, str(_SPARK / "bin" / "spark-class"), *main]
        self._processes.start(name, command, cwd=folder, log=folder / f"{name}.log")
        if name == MASTER:
            self._wait_for_port()

    def kill(self, name: str) -> None:
        self._processes.signal(name, signal.SIGKILL)
        self._processes.wait(name, 10)

    def close(self) -> None:
        """Executors end with their workers; this does not wait for it."""
        self._processes.close()
        for process in marked(self.mark):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + _STARTS_WITHIN
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self._port)) == 0:
                    return
            if time.monotonic() > deadline:
                raise RuntimeError("Spark's master does not start")
            time.sleep(0.2)
