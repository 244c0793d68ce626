"""`--metrics-port` of `run` and `serve`."""

import socket
from pathlib import Path

import pytest

from logs import Pair
from monitoring.conftest import samples
from ports import free_port
from rest.api import Api, serving, worker_file
from running.command import in_process


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters=A,B\nA.bootstrap.servers=a:9092\nB.bootstrap.servers=b:9092\nA->B.enabled=true\n")
    return file


def test_a_port_that_is_taken_is_an_error_that_names_it(file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = in_process("run", file, "--no-rest", "--metrics-port", port)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"--metrics-port {port}: cannot listen on 127.0.0.1:{port}: Address already in use" in said


@pytest.mark.parametrize("option", [("--metrics-address", "0.0.0.0"), ("--metrics-names", "strimzi")])
def test_options_of_the_port_need_the_port(file: Path, option: tuple[str, str]) -> None:
    done = in_process("run", file, "--no-rest", *option)
    assert done.exit_code == 2
    assert "need --metrics-port" in " ".join(done.output.split())


def test_unknown_names_are_refused_with_those_that_there_are(file: Path) -> None:
    done = in_process("run", file, "--metrics-port", free_port(), "--metrics-names", "jolokia")
    assert done.exit_code == 2
    assert "strimzi-reporter" in done.output


def test_serve_has_it_too(pair: Pair, tmp_path: Path) -> None:
    file, api = worker_file(tmp_path, pair.b, "metrics-port")
    metrics = Api(free_port())
    options = ("--metrics-port", str(metrics.port), "--metrics-address", "0.0.0.0")
    with serving(file, api, *options):
        values = samples(metrics("GET", "/metrics").body)
        assert values["kafka_connect_worker_connector_count"] == {frozenset(): 0}
        assert metrics("GET", "/connectors").status == 404
        assert "can read the names of topics and groups" in file.with_suffix(".log").read_text()
