"""The real MirrorMaker 2 and Heliograph are given the same file, on clusters with the same topics and groups.

Each file in `mm2_files` is about one trait of such files. `make test` tries a few of them, MM2_FILES=all every one.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from heliograph.sandbox import ClusterSpec, Sandbox
from logs import Log
from mm2 import MirrorMakers
from running.command import start
from running.same_file import (
    Clusters,
    Result,
    add_later_topics,
    copying_flows,
    fill,
    looked_for,
    result,
    written,
)
from waiting import PATIENCE, until

_FILES = Path(__file__).parent / "mm2_files"
_SHORT = ("aliases-of-clusters", "identity", "syntax")


def _files() -> list[str]:
    return sorted(file.stem for file in _FILES.iterdir()) if os.environ.get("MM2_FILES") == "all" else list(_SHORT)


@dataclass
class Tools:
    """Each tool has clusters of its own, named by a letter."""

    sandbox: Sandbox
    mirror_makers: MirrorMakers
    _logs: dict[str, Log] = field(default_factory=dict)

    def clusters(self, letters: str) -> tuple[Clusters, Clusters]:
        """MM2's and ours, started when they are first needed. All have the same content."""
        names = [f"{tool}-{letter}" for letter in letters for tool in ("mm2", "heliograph")]
        missing = [name for name in names if name not in self._logs]
        spec = ClusterSpec(fast_start=True, heap_mb=192)
        started = self.sandbox.start(dict.fromkeys(missing, spec))
        self._logs |= {name: Log(cluster.bootstrap) for name, cluster in zip(missing, started, strict=True)}
        of_mm2, ours = (
            {letter: self._logs[f"{tool}-{letter}"] for letter in letters} for tool in ("mm2", "heliograph")
        )
        fill(of_mm2)
        fill(ours)
        return of_mm2, ours


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with Sandbox() as sandbox, MirrorMakers(tmp_path_factory.mktemp("mm2")) as mirror_makers:
        yield Tools(sandbox, mirror_makers)


@contextmanager
def _heliograph(properties: Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    process = start("run", "--no-rest", properties, log=log)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE)


@pytest.mark.parametrize("name", _files())
def test_mm2_and_heliograph_create_the_same_from_one_file(name: str, tools: Tools, tmp_path: Path) -> None:
    """Names and partitions of mirrors and internal topics, checkpoints, heartbeats, offset syncs, groups with their
    offsets; and where Heliograph looks for the state of an MM2 that it takes over from."""
    file, log = _FILES / f"{name}.properties", tmp_path / "log"
    letters = "abc" if "@c@" in file.read_text(encoding="latin-1") else "ab"
    of_mm2, ours = tools.clusters(letters)
    for_mm2, for_us = written(file, of_mm2, tmp_path / "mm2"), written(file, ours, tmp_path / "heliograph")
    expected, flows = looked_for(for_us, ours), copying_flows(for_us, ours)
    assert flows

    with _heliograph(for_us, log) as process, tools.mirror_makers.running(for_mm2):

        def results() -> tuple[Result, Result]:
            assert process.poll() is None, log.read_text()
            return result(of_mm2), result(ours).with_lines(expected)

        def are_equal(*markers: str) -> bool:
            """Also, every flow of both has copied the topics `markers`."""
            seen = results()
            have_copied = all(
                tool.has_mirror(target, marker + source)
                for tool in seen
                for source, target in flows
                for marker in markers
            )
            return have_copied and seen[0] == seen[1]

        def differences() -> str:
            mm2, heliograph = results()
            return f"only MM2 has -, only we have +:\n{mm2.differences(heliograph)}\n{log.read_text()}"

        until(lambda: are_equal("ready-"), differences)
        # What a tool would create too much, or later, is there when each flow has looked for topics once more.
        add_later_topics(of_mm2)
        add_later_topics(ours)
        until(lambda: are_equal("ready-", "ready-again-"), differences)
