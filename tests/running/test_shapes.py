"""The files in examples/, each run unchanged except for the addresses."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.client import replication_hops
from heliograph.sandbox import ClusterSpec, Sandbox
from logs import PATIENCE, Log, some_records, until
from running.command import program_said, start

_EXAMPLES = Path(__file__).parent.parent.parent / "examples"
_COUNT = 30
_QUIET = 2.0  # seconds in which nothing more may happen

# For each example its clusters, and the mirrors of a topic that is written to one of them.
_SHAPES = {
    "active-passive": (("primary", "standby"), {"primary": {"standby": "primary.{}"}, "standby": {}}),
    "active-active": (("east", "west"), {"east": {"west": "east.{}"}, "west": {"east": "west.{}"}}),
    "fan-in": (("paris", "tokyo", "hub"), {"paris": {"hub": "paris.{}"}, "tokyo": {"hub": "tokyo.{}"}, "hub": {}}),
    "fan-out": (("master", "oslo", "quito"), {"master": {"oslo": "master.{}", "quito": "master.{}"}, "oslo": {}}),
    "chain": (
        ("edge", "region", "centre"),
        {"edge": {"region": "edge.{}", "centre": "region.edge.{}"}, "region": {"centre": "region.{}"}, "centre": {}},
    ),
    "ring": (
        ("a", "b", "c"),
        {
            "a": {"b": "a.{}", "c": "b.a.{}"},
            "b": {"c": "b.{}", "a": "c.b.{}"},
            "c": {"a": "c.{}", "b": "a.c.{}"},
        },
    ),
}


@pytest.fixture(scope="module")
def three() -> Iterator[list[Log]]:
    with Sandbox() as sandbox:
        spec = ClusterSpec(fast_start=True)
        yield [Log(cluster.bootstrap) for cluster in sandbox.start({"X": spec, "Y": spec, "Z": spec})]


@pytest.mark.parametrize("shape", _SHAPES)
def test_an_example_copies_what_it_says_and_no_more(shape: str, three: list[Log], tmp_path: Path) -> None:
    aliases, expected = _SHAPES[shape]
    clusters = dict(zip(aliases, three, strict=False))
    text = (_EXAMPLES / f"{shape}.properties").read_text()
    for alias, cluster in clusters.items():
        text, replaced = re.subn(
            rf"(?m)^{alias}\.bootstrap\.servers = .*$", f"{alias}.bootstrap.servers = {cluster.bootstrap}", text
        )
        assert replaced == 1
    # Of this shape only, as the clusters are used by others before and after.
    topics = {alias: f"{shape}-of-{alias}" for alias in expected}
    text = text.replace("topics = .*", f"topics = .*{shape}-of-.*")
    file = tmp_path / f"{shape}.properties"
    file.write_text(f"{text}\nreplication.factor = 1\nrefresh.topics.interval.seconds = 1\n")
    for alias, topic in topics.items():
        clusters[alias].create(topic, partitions=2)
        clusters[alias].write(topic, some_records(_COUNT), partition=1)
    wanted = {
        (where, name.format(topics[alias])): clusters[alias].read(topics[alias], 1)
        for alias, mirrors in expected.items()
        for where, name in mirrors.items()
    }

    def arrived() -> bool:
        return all(
            clusters[where].exists(name) and clusters[where].bounds(name, 1)[1] >= _COUNT for where, name in wanted
        )

    log = tmp_path / "log"
    process = start("run", file, log=log)
    try:
        until(arrived)
        time.sleep(_QUIET)
        names = {alias: cluster.topics() for alias, cluster in clusters.items()}
        if shape == "chain":
            until(lambda: replication_hops(clusters["centre"].bootstrap, "edge") == 2)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
    for (where, name), records in wanted.items():
        assert clusters[where].read(name, 1) == records, name
    for alias, topics_there in names.items():
        ours = {name for name in topics_there if f"{shape}-of-" in name}
        assert ours == {topics.get(alias, "")} & ours | {name for where, name in wanted if where == alias}
        for name in topics_there:
            pieces = name.split(".")[:-1]
            assert len(pieces) == len(set(pieces)), f"{name} on {alias} was copied in a cycle"


def test_after_a_failover_a_group_reads_on_without_translation() -> None:
    """docs/offsets.md shows the output of the example."""
    shown = program_said(_EXAMPLES / "failover.py")
    page = (_EXAMPLES.parent / "docs" / "offsets.md").read_text()
    lines = [line for line in shown.splitlines() if line.startswith("#")]
    assert len(lines) == 4
    assert [line for line in lines if line not in page] == []
