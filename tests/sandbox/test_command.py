"""The command, and how it ends: with Ctrl-C, with SIGTERM, with `kill -9`, and with its last broker."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import javaproperties
import psutil
import pytest
import typer
from kafka import KafkaAdminClient
from typer.testing import CliRunner

from heliograph.cli.sandbox import sandbox
from heliograph.sandbox.ports import free_ports
from sandbox.watching import is_running
from secured import kafka_python
from waiting import until

COMMAND = """
import typer
from heliograph.cli.sandbox import sandbox
app = typer.Typer()
app.command()(sandbox)
app()
"""

# A program with a sandbox, and a fork of it that inherits all open files.
PROGRAM = """
import json, os, time
from heliograph.sandbox import ClusterSpec, Sandbox
box = Sandbox()
(a,) = box.start({"A": ClusterSpec(fast_start=True)})
fork = os.fork()
if fork:
    print(json.dumps({"folder": str(box.folder), "clusters": {"A": {"pids": a.pids()}}, "fork": fork}), flush=True)
time.sleep(60)
"""


class Started:
    """A running command, its first output, and all processes that it has started."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process = process
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        self.output: dict[str, Any] = json.loads(line)
        self.pids = [pid for cluster in self.output["clusters"].values() for pid in cluster["pids"].values()]
        self.all_pids = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]

    def assert_ended_in_order(self) -> None:
        _, errors = self.process.communicate(timeout=10)
        assert self.process.returncode == 0
        assert errors.endswith("stopped\n")
        self.assert_nothing_left()

    def assert_nothing_left(self) -> None:
        until(lambda: not any(map(is_running, self.all_pids)), seconds=5)
        until(lambda: not Path(self.output["folder"]).exists(), seconds=5)


@contextmanager
def started(code: str, *options: str) -> Iterator[Started]:
    # In a group of its own, as a shell would start it: the whole group gets a Ctrl-C.
    with subprocess.Popen(
        [sys.executable, "-c", code, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield Started(process)
        finally:
            process.kill()


def test_ctrl_c_ends_the_command_in_order_and_leaves_nothing_but_the_file_asked_for(tmp_path: Path) -> None:
    file, port = tmp_path / "mm2.properties", free_ports(1)[0]
    options = ["--json", "--clusters", "east,west", "--port", f"east={port}", "--write", str(file)]
    with started(COMMAND, *options) as command:
        assert command.output["clusters"]["east"]["bootstrap"] == f"127.0.0.1:{port}"
        assert command.output["properties"] == str(file)
        assert f"east.bootstrap.servers = 127.0.0.1:{port}\n" in file.read_text()
        assert len(command.pids) == 2
        os.killpg(command.process.pid, signal.SIGINT)
        command.assert_ended_in_order()


def test_clusters_are_secured_and_the_files_to_connect_are_for_the_owner_only(tmp_path: Path) -> None:
    file, port = tmp_path / "mm2.properties", free_ports(1)[0]
    options = ["--json", "--port", f"A={port}", "--brokers", "A=2", "--write", str(file)]
    with started(COMMAND, *options, "--security", "A=scram", "--security", "B=mtls") as command:
        a, b = command.output["clusters"]["A"], command.output["clusters"]["B"]
        first, _ = a["bootstrap"].split(",")
        assert (first, a["security"], b["security"]) == (f"127.0.0.1:{port}", "scram", "mtls")
        mirroring = javaproperties.loads(file.read_text())
        for alias, cluster in (("A", a), ("B", b)):
            settings = javaproperties.loads(Path(cluster["client"]).read_text())
            assert settings["bootstrap.servers"] == mirroring[f"{alias}.bootstrap.servers"] == cluster["bootstrap"]
            match = re.search(r'username="admin" password="(.*)"', settings.get("sasl.jaas.config", ""))
            arguments = kafka_python(settings, "admin", match[1] if match else "")
            # Each broker knows the passwords, not only the one that was asked to set them.
            arguments["bootstrap_servers"] = arguments["bootstrap_servers"][-1:]
            admin = KafkaAdminClient(**arguments)
            admin.create_topics({"greetings": {"num_partitions": 1, "replication_factor": len(cluster["pids"])}})
            admin.close()
            assert stat.S_IMODE(Path(cluster["client"]).stat().st_mode) == 0o600
        assert 'username="mirror"' in mirroring["A.sasl.jaas.config"]
        assert mirroring["B.ssl.keystore.location"].endswith("/B/mirror.pem")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_sigterm_ends_the_command_in_order_and_leaves_nothing() -> None:
    with started(COMMAND, "--json", "--clusters", "A") as command:
        assert command.output["properties"] is None
        command.process.terminate()
        command.assert_ended_in_order()


def test_a_killed_parent_leaves_no_broker_and_no_folder() -> None:
    with started(COMMAND, "--json", "--clusters", "A") as command:
        assert all(map(is_running, command.all_pids))
        command.process.kill()
        command.assert_nothing_left()


def test_a_killed_parent_leaves_nothing_even_if_a_fork_of_it_lives_on() -> None:
    with started(PROGRAM) as program:
        fork = program.output["fork"]
        program.all_pids.remove(fork)
        program.process.kill()
        program.assert_nothing_left()
        assert is_running(fork)
        os.kill(fork, signal.SIGKILL)


def test_a_killed_watchdog_takes_its_brokers_with_it() -> None:
    with started(COMMAND, "--json", "--clusters", "A") as command:
        (watchdog,) = psutil.Process(command.process.pid).children()
        watchdog.kill()
        _, errors = command.process.communicate(timeout=10)
        assert command.process.returncode == 1
        assert "watchdog process" in errors
        command.assert_nothing_left()


def test_a_broker_that_ends_by_itself_is_announced_and_the_last_one_ends_the_command() -> None:
    with started(COMMAND, "--json") as command:
        first, last = command.pids
        assert command.process.stderr is not None
        os.kill(first, signal.SIGKILL)
        assert "starting A (Kafka 4.3.1, brokers: 1), B" in command.process.stderr.readline()
        assert command.process.stderr.readline() == "BROKER DOWN: A-1 ended (killed by signal 9); its log says:\n"
        assert command.process.poll() is None
        os.kill(last, signal.SIGKILL)
        _, errors = command.process.communicate(timeout=10)
        assert "BROKER DOWN: B-1" in errors
        assert errors.endswith("heliograph sandbox: no broker is left running\n")
        assert command.process.returncode == 1
        command.assert_nothing_left()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--clusters A,A", "--clusters: an alias is given twice"),
        ("--clusters A->B", "--clusters: 'A->B' is not a valid alias of a cluster"),
        ("--brokers many", "--brokers: 'many' is not a number"),
        ("--brokers 0", "--brokers: a cluster has one broker or more, not 0"),
        ("--brokers C=3", "--brokers: there is no cluster 'C'; the clusters are A, B"),
        ("--port 9092", "--port: '9092' is not of the form ALIAS=PORT, such as A=9092"),
        ("--port A=x", "--port: 'x' is not a number"),
        ("--port A=9092 --port B=9092", "--port: the same port is given twice"),
        ("--port A=9092 --port A=9093", "--port: 2 ports are too many for 1 broker(s)"),
        ("--port A=123456", "--port: ports are between 1 and 65535, not 123456"),
        ("--version B=newest", "--version: 'newest' is not a version of Kafka such as 4.3.1"),
        ("--set thing", "--set: 'thing' is not of the form KEY=VALUE or ALIAS:KEY=VALUE"),
        ("--set C:thing=1", "--set: there is no cluster 'C'; the clusters are A, B"),
        (
            "--security kerberos",
            "--security: 'kerberos' is no kind of security; there are tls, mtls, scram, plain, oauth",
        ),
        ("--security C=tls", "--security: there is no cluster 'C'; the clusters are A, B"),
        ("--security tls --version B=1.1.1", "--security: security needs Kafka 3.5.0 or newer, not 1.1.1"),
        ("--heap 1", "--heap: a broker needs 64 MB of heap or more, not 1"),
        ("--write /nowhere/mm2.properties", "--write: /nowhere is not a folder"),
        (f"--write {__file__}", f"--write: {__file__} exists and was not written by a sandbox"),
        ("--clusters A --write x", "--write: mirroring needs two clusters, see --clusters"),
    ],
)
def test_a_bad_option_is_named_in_one_line(options: str, message: str) -> None:
    app = typer.Typer()
    app.command()(sandbox)
    result = CliRunner().invoke(app, options.split())
    assert result.exit_code == 2
    assert result.stderr.startswith(f"heliograph sandbox: {message}")
    assert result.stderr.count("\n") == 1


def test_the_help_has_an_example() -> None:
    app = typer.Typer()
    app.command()(sandbox)
    assert "heliograph sandbox --clusters east,west --brokers west=3" in CliRunner().invoke(app, ["--help"]).stdout
