"""Real clusters for all tests, started once per run and shared; each test uses topics of its own."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.sandbox import ClusterSpec, Sandbox
from logs import Log, Pair

_numbers = itertools.count(1)
_LONG = {"faults", "monitoring", "rest", "running"}


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as one:
        yield one


@pytest.fixture(scope="session")
def pair(sandbox: Sandbox) -> Pair:
    # Compaction within a second, for the tests of what it leaves behind; and no retention, which goes by the records'
    # times, and those are from 1970 in some tests.
    # Everybody may do everything, but there can be access rules to be read. Quotas are by the second, not by ten.
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first, so that those who run side by side end at about the same time."""
    items.sort(key=lambda item: not _LONG.intersection(item.path.parts))
