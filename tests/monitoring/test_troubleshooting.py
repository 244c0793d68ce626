"""The messages on the page are those that are printed."""

import re
import threading
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest

from heliograph.sandbox.ports import free_ports
from logs import until
from monitoring.conftest import LOST, NOT_MIRRORED, STOPPED, Watched
from running.command import heliograph

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"


def _blocks() -> dict[str, str]:
    """The message under each heading that promises a test."""
    found = re.findall(r"^## ([^\n]+?) ✓\n+```\n(.+?)\n```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return {title: re.sub(r"^(?:ERROR|WARNING|INFO) +", "", text) for title, text in found}


def _same(text: str) -> str:
    """But for numbers."""
    return re.sub(r"\d+", "0", text)


def _run(folder: Path, address: str, more: str = "") -> str:
    file = folder / "mm2.properties"
    file.write_text(
        f"clusters = A, B\nA.bootstrap.servers = {address}\nB.bootstrap.servers = {address}\n"
        f"A->B.enabled = true\n{more}"
    )
    done = heliograph("run", file, "--no-rest")
    assert done.returncode == 2
    return _same(
        done.stderr.replace(str(file), "mm2.properties").replace("cluster B", "cluster A").replace(": B.", ": A.")
    )


def test_every_promise_is_kept_here() -> None:
    assert _blocks().keys() == {
        *("A cluster cannot be reached", "The wrong protocol for a listener", "Authentication and TLS"),
        *("A task has failed", "Records are lost", "A topic is not mirrored", "A group is not synced"),
    }


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    assert _same(_blocks()["A cluster cannot be reached"]) in _run(tmp_path, f"127.0.0.1:{port}")


class _HangsUp(BaseRequestHandler):
    """As a listener for TLS does on what is no greeting of TLS."""

    def handle(self) -> None:
        self.request.recv(100)


def test_a_listener_that_speaks_something_else(tmp_path: Path) -> None:
    with ThreadingTCPServer(("127.0.0.1", 0), _HangsUp) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        said = _run(tmp_path, f"127.0.0.1:{other.server_address[1]}")
        other.shutdown()
    assert _same(_blocks()["The wrong protocol for a listener"]) in said


def test_more_than_plain_text(tmp_path: Path) -> None:
    said = _run(tmp_path, "a:9092", "A.security.protocol = SASL_SSL\n")
    assert _same(_blocks()["Authentication and TLS"]) in said


@pytest.mark.parametrize(
    ("title", "here", "there"),
    [
        ("A task has failed", "orders", STOPPED),
        ("Records are lost", "orders", LOST),
        ("A topic is not mirrored", "orders", NOT_MIRRORED),
        ("A group is not synced", "billing", "watched-group-in-use"),
    ],
)
def test_what_a_running_flow_says(watched: Watched, title: str, here: str, there: str) -> None:
    text = _blocks()[title].replace("A->B", "W->V").replace("A.", "W.").replace(here, there)
    until(lambda: _same(text) in _same(watched.log.read_text()))
