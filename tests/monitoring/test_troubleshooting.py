"""The messages on the page are those that Heliograph prints."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest

from heliograph.sandbox import Sandbox
from logs import until
from monitoring.conftest import LOST, NOT_MIRRORED, STOPPED, Watched
from monitoring.troubled import troubled
from running.command import heliograph

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"


IN_TROUBLE = (
    *("Authorization", "A missing internal topic", "More replicas than brokers", "A message that is too large"),
    *("Clocks", "MirrorMaker 2 still runs"),
)


def blocks() -> dict[str, str]:
    """The messages under each heading."""
    matches = re.findall(r"^## ([^\n]+?) ✓\n+```\n(.+?)\n```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return {title: re.sub(r"^(?:ERROR|WARNING|INFO) +", "", text, flags=re.MULTILINE) for title, text in matches}


def same(text: str) -> str:
    """Replaces all numbers."""
    return re.sub(r"\d+", "0", text)


def _run(folder: Path, address: str, more: str = "") -> str:
    file = folder / "mm2.properties"
    file.write_text(
        f"clusters = A, B\nA.bootstrap.servers = {address}\nB.bootstrap.servers = {address}\n"
        f"A->B.enabled = true\n{more}"
    )
    done = heliograph("run", file, "--no-rest")
    assert done.returncode == 2
    return same(
        done.stderr.replace(str(file), "mm2.properties").replace("cluster B", "cluster A").replace(": B.", ": A.")
    )


@pytest.fixture(scope="module", autouse=True)
def trouble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Starts with the first test: a message that takes half a minute is there when the last test needs it."""
    with Sandbox() as sandbox, troubled(sandbox, tmp_path_factory.mktemp("troubled")) as log:
        yield log


def test_every_message_on_the_page_is_promised_and_every_promise_kept_here() -> None:
    assert len(blocks()) == PAGE.read_text().count("\n```") / 2
    assert blocks().keys() == {
        *("A cluster cannot be reached", "The wrong protocol for a listener", "Authentication and TLS"),
        *("A task has failed", "Records are lost", "A topic is not mirrored", "A group is not synced"),
        *(
            "The port is taken",
            "The REST API refuses a call",
            "Two processes run one flow",
            "A transaction hangs",
            *IN_TROUBLE,
        ),
    }


def test_a_cluster_that_is_not_there(tmp_path: Path, closed_port: int) -> None:
    assert same(blocks()["A cluster cannot be reached"]) in _run(tmp_path, f"127.0.0.1:{closed_port}")


class _HangsUp(BaseRequestHandler):
    """Like a TLS listener that receives no TLS handshake."""

    def handle(self) -> None:
        self.request.recv(100)


def test_a_listener_that_speaks_something_else(tmp_path: Path) -> None:
    with ThreadingTCPServer(("127.0.0.1", 0), _HangsUp) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        output = _run(tmp_path, f"127.0.0.1:{other.server_address[1]}")
        other.shutdown()
    assert same(blocks()["The wrong protocol for a listener"]) in output


def test_more_than_plain_text(tmp_path: Path) -> None:
    output = _run(tmp_path, "a:9092", "A.security.protocol = SASL_SSL\n")
    assert same(blocks()["Authentication and TLS"]) in output


@pytest.mark.parametrize(
    ("title", "on_page", "in_log"),
    [
        ("A task has failed", "orders", STOPPED),
        ("Records are lost", "orders", LOST),
        ("A topic is not mirrored", "orders", NOT_MIRRORED),
        ("A group is not synced", "billing", "watched-group-in-use"),
    ],
)
def test_what_a_running_flow_says(watched: Watched, title: str, on_page: str, in_log: str) -> None:
    text = blocks()[title].replace("A->B", "W->V").replace("A.", "W.").replace(on_page, in_log)
    until(lambda: same(text) in same(watched.log.read_text()))


def test_a_port_that_is_taken(tmp_path: Path, trouble: Path) -> None:
    next_one, taken = blocks()["The port is taken"].splitlines()
    assert same(next_one) in same(trouble.read_text())
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    with ThreadingTCPServer(("127.0.0.1", 0), BaseRequestHandler) as other:
        done = heliograph("run", file, "--rest", f"127.0.0.1:{other.server_address[1]}")
    assert done.returncode == 2
    assert same(taken) in same(done.stderr)


@pytest.mark.parametrize("title", IN_TROUBLE)
def test_what_a_run_in_trouble_says(trouble: Path, title: str) -> None:
    lines = same(blocks()[title]).splitlines()

    def all_logged() -> bool:
        log = _as_on_the_page(trouble.read_text())
        return all(line in log for line in lines)

    until(all_logged)


def _as_on_the_page(log: str) -> str:
    """On the page, all messages are about one topic of one flow."""
    for wrong, right in (
        (r"\b(C->D|E->F|M->N)\b", "A->B"),
        (r"\b[CEM]([.-])", r"A\1"),
        (r" on [FN] ", " on B "),
        (r"\b(no-settings|no-read|no-write|no-create|wide|big|early|tomorrow)(?=[- ])", "orders"),
    ):
        log = re.sub(wrong, right, log)
    return same(log)
