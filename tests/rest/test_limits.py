"""Limits on requests, the headers of every answer, and requests of web pages."""

import logging
import socket
from collections.abc import Iterator

import pytest
from rich.console import Console

from heliograph.cli.screen import set_up_logging
from heliograph.model.rest_settings import RestSettings
from heliograph.rest import gate, http_connection, server
from heliograph.rest.rate_limit import RateLimit
from rest.served_app import SECRET, Client, config, serving
from waiting import PATIENCE, until


@pytest.fixture
def client() -> Iterator[Client]:
    with serving(RestSettings()) as served:
        yield served


def _sent(client: Client, data: bytes) -> bytes:
    """All that is answered until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) as connected:
        connected.sendall(data)
        received = b""
        while part := connected.recv(65536):
            received += part
        return received


def test_a_body_that_is_too_large_is_refused_before_it_is_read(client: Client) -> None:
    refused = _sent(client, b"PUT /connectors/x/config HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n{")
    assert refused.startswith(b"HTTP/1.1 413 ")
    assert b'{"error_code": 413, "message": "The body has more than 1048576 bytes"}' in refused
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    head = b"PUT /connectors/x/config HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert _sent(client, head + 17 * chunk).startswith(b"HTTP/1.1 413 ")
    large = config("A", "B", topics="t" * 500_000)
    assert client("PUT", "/connectors/ab/config", large).status == 200


def test_urls_and_headers_have_a_limit(client: Client) -> None:
    assert client("GET", f"/{'x' * gate.MAX_URL}").status == 414
    assert client("GET", f"/connectors?expand={'x' * gate.MAX_URL}").status == 414
    assert client("GET", "/connectors", x="y" * 20_000).status == 200
    assert _sent(client, b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 40_000).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_does_not_complete_its_request_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "_HEADERS_WITHIN", 0.2)
    monkeypatch.setattr(gate, "_BODY_WITHIN", 0.2)
    monkeypatch.setattr(server, "_KEEP_ALIVE", 0)
    with serving(RestSettings()) as client:
        assert _sent(client, b"") == b""
        assert _sent(client, b"GET / HTTP/1.1\r\nHost:") == b""
        head = b"PUT /connectors/x/config HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"
        assert _sent(client, head + b"{").startswith(b"HTTP/1.1 408 ")
        whole = b"GET /connectors HTTP/1.1\r\nHost: h\r\n\r\n"
        assert _sent(client, whole).startswith(b"HTTP/1.1 200 ")
        assert _sent(client, whole + b"GET / HTTP/1.1\r\nHost:").startswith(b"HTTP/1.1 200 ")


def test_an_address_that_sends_too_much_is_asked_to_wait() -> None:
    with serving(RestSettings(requests_per_second=1)) as client:
        statuses = [client("GET", "/connectors").status for _ in range(5)]
        assert statuses == [200] * 5
        until(lambda: (refused := client("GET", "/connectors")).status == 429 and refused.headers["retry-after"] == "1")


def test_wrong_logins_use_up_the_rate_sooner(tmp_path_factory: pytest.TempPathFactory) -> None:
    users = tmp_path_factory.mktemp("limits") / "users"
    users.write_text("alice=wonder")
    with serving(RestSettings(users=str(users), requests_per_second=10)) as client:
        statuses = [client.as_user("alice", "guess")("GET", "/").status for _ in range(10)]
        assert statuses[0] == 401
        assert 429 in statuses


def test_the_rate_limit_refills_and_counts_each_address_alone() -> None:
    now = 0.0
    limit = RateLimit(2, lambda: now)
    assert [limit.wait("a") for _ in range(11)] == [0.0] * 10 + [0.5]
    assert limit.wait("b") == 0
    now = 0.5
    assert [limit.wait("a"), limit.wait("a")] == [0.0, 0.5]
    for number in range(20_000):
        limit.wait(f"address {number}")
    assert limit.wait("a") == 0, "it is forgotten, and memory stays bounded"


def test_every_answer_has_the_security_headers(client: Client) -> None:
    for answer in (client("GET", "/connectors"), client("GET", "/nowhere"), client("GET", f"/{'x' * 9000}")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
    assert "https://cdn.jsdelivr.net" in client("GET", "/heliograph/v1/docs").headers["content-security-policy"]


def test_a_web_page_of_elsewhere_changes_nothing(client: Client) -> None:
    assert client("POST", "/connectors/ab/restart", origin="https://evil.example").status == 403
    assert client("POST", "/connectors/ab/restart", origin="null").status == 403
    assert client("POST", "/connectors/ab/restart", origin=f"http://127.0.0.1:{client.port}").status == 204
    assert client("POST", "/connectors/ab/restart").status == 204
    allowed = RestSettings(allow_origin="https://console.example", allow_methods=("GET", "PUT"))
    with serving(allowed) as open_to_it:
        answer = open_to_it("GET", "/connectors", origin="https://console.example")
        assert answer.headers["access-control-allow-origin"] == "https://console.example"
        asked = {"origin": "https://console.example", "access_control_request_method": "PUT"}
        assert open_to_it("OPTIONS", "/connectors/ab/pause", **asked).status == 200
        assert open_to_it("PUT", "/connectors/ab/pause", origin="https://console.example").status == 202
        assert "access-control-allow-origin" not in open_to_it("GET", "/", origin="https://evil.example").headers


def test_an_unexpected_error_shows_nothing_of_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError(f"with {SECRET} in it")

    monkeypatch.setattr("heliograph.rest.connectors_api.connector_info", fail)
    with serving(RestSettings()) as client:
        answer = client("GET", "/connectors/x%0aINFO%20forged")
    assert (answer.status, answer.body["message"]) == (500, "Internal error: the log of Heliograph has the reason")
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.getMessage() == "GET /connectors/x\\nINFO forged failed"


def test_no_name_from_outside_looks_like_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers.clear()
    try:
        set_up_logging(Console(stderr=True, force_terminal=False), False)
        logging.getLogger("heliograph.test").info("connector %s", "x\n2026-01-01T00:00:00 ERROR   forged\x1b[31m\r")
    finally:
        root.handlers[:], root.level = before
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(" INFO    connector x")
    assert second == "    2026-01-01T00:00:00 ERROR   forged\\x1b[31m\\r"


def test_forwarded_addresses_are_not_believed() -> None:
    with serving(RestSettings(requests_per_second=1)) as client:
        statuses = [client("GET", "/connectors", x_forwarded_for=f"10.0.0.{number}").status for number in range(20)]
        assert 429 in statuses
