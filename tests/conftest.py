"""Real clusters for all tests, started once per run and shared. Each test uses topics of its own."""

import itertools
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from distribution import Scheduling, rank
from heliograph.model import columns
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.wire.kernels import loading
from logs import Log, Pair
from process_starters import starts_processes
from secured import SecuredPair, start_secured

_numbers = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def _compiled_code() -> None:
    """As in a process that copies. COMPILED=off in the environment: without, see `make test-without-numba`."""
    assert loading.load() == (os.environ.get("COMPILED") != "off")


@pytest.fixture(scope="session", autouse=True)
def _columns() -> None:
    """COLUMNS=all in the environment: the ledger works with columns in all tests, however few there are."""
    if os.environ.get("COLUMNS") == "all":
        columns._MANY = 1


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture(scope="session")
def pair(sandbox: Sandbox) -> Pair:
    # Compaction within a second, for tests of compacted logs. No retention: it goes by the records' timestamps, which
    # are from 1970 in some tests. An authorizer that allows everything, for tests that read ACLs. Quotas over one
    # second instead of ten.
    settings = {
        "log.cleaner.backoff.ms": "300",
        "log.retention.ms": "-1",
        "quota.window.num": "2",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    spec = ClusterSpec(settings=settings, fast_start=True)
    a, b = sandbox.start({"A": spec, "B": spec})
    return Pair(Log(a.bootstrap), Log(b.bootstrap))


@pytest.fixture(scope="session")
def secured(sandbox: Sandbox) -> SecuredPair:
    return start_secured(sandbox)


@pytest.fixture(scope="session")
def closed_port() -> Iterator[int]:
    """A port where nobody listens. It is bound, so that no broker takes it meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    return f"t{next(_numbers)}-{request.node.originalname.removeprefix('test_')[:60]}"


@pytest.fixture
def properties(pair: Pair, tmp_path: Path, topic: str) -> Path:
    """A file that mirrors this test's topic from A to B."""
    file = tmp_path / "mm2.properties"
    file.write_text(
        f"clusters = A, B\n"
        f"A.bootstrap.servers = {pair.a.bootstrap}\n"
        f"B.bootstrap.servers = {pair.b.bootstrap}\n"
        f"A->B.enabled = true\n"
        f"A->B.topics = {topic}.*\n"
        f"replication.factor = 1\n"
        f"refresh.topics.interval.seconds = 1\n"
        f"emit.heartbeats.enabled = false\nheartbeats.replication.enabled = false\n"
    )
    return file


# How long an example takes depends on what else the machine does.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "processes: starts brokers, Spark or another process; set by itself")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and starts_processes(item.function, *_fixtures_of(item)):
            item.add_marker("processes")
    items.sort(key=lambda item: rank(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def _fixtures_of(item: pytest.Function) -> list[Callable[..., object]]:
    definitions = item._fixtureinfo.name2fixturedefs.values()
    return [definition.func for every in definitions for definition in every]
