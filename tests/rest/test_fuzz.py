"""Random requests and random bytes bring no crash, no traceback and no secret to the outside."""

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heliograph.model.rest_settings import Listener, ListenerTls, RestSettings
from heliograph.model.security import PEM, KeyStore
from rest.certificates import issuer
from rest.served_app import SECRET, Client, config, serving
from waiting import PATIENCE

REQUESTS = int(os.environ.get("FUZZ", "8"))  # of each call, valid and not
MANY = 10**9  # requests per second: the rate limit has tests of its own
EXAMPLES = settings(
    max_examples=REQUESTS,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def served() -> Iterator[Client]:
    with serving(RestSettings(requests_per_second=MANY)) as client:
        yield client


@pytest.fixture(scope="module")
def description(served: Client) -> Any:
    levels = {name: logger.level for name, logger in _loggers().items()}
    yield schemathesis.openapi.from_url(f"{served.url}/heliograph/v1/openapi.json")
    for name, logger in _loggers().items():
        logger.setLevel(levels.get(name, logging.NOTSET))


def _loggers() -> dict[str, logging.Logger]:
    return {"": logging.getLogger()} | {
        name: logger for name, logger in logging.Logger.manager.loggerDict.items() if isinstance(logger, logging.Logger)
    }


def test_no_request_of_the_description_crashes(description: Any) -> None:
    """Valid requests of every call, and others where there is a body. Every path is a valid one."""
    for found in description.get_all_operations():
        operation = found.ok()
        _fuzz(operation, schemathesis.GenerationMode.POSITIVE)
        if operation.body:
            _fuzz(operation, schemathesis.GenerationMode.NEGATIVE)


def _fuzz(operation: Any, mode: schemathesis.GenerationMode) -> None:
    @EXAMPLES
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        _check(case.call(timeout=PATIENCE))

    call()


def _check(response: Any) -> None:
    """An error of a cluster that cannot be reached may be a 500, as with Connect; an unexpected error may not."""
    assert SECRET not in response.text
    assert "Traceback" not in response.text
    assert "Internal error" not in response.text
    if response.status_code >= 400 and response.status_code != 422:
        assert response.json()["error_code"] == response.status_code


def test_the_description_has_every_call_of_connect(served: Client) -> None:
    paths = served("GET", "/heliograph/v1/openapi.json").body["paths"]
    calls = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert {
        ("GET", "/"),
        ("GET", "/health"),
        ("POST", "/connectors"),
        ("PATCH", "/connectors/{name}/config"),
        ("PUT", "/connectors/{name}/stop"),
        ("POST", "/connectors/{name}/tasks/{task}/restart"),
        ("DELETE", "/connectors/{name}/offsets"),
        ("PUT", "/connector-plugins/{plugin}/config/validate"),
        ("PUT", "/admin/loggers/{name}"),
    } <= calls
    assert "requestBody" in paths["/connectors"]["post"]


# Connectors that are nearly right: settings that exist, with values that may be anything.
NAMES = (
    st.sampled_from([*config("A", "B"), "tasks.max", "topics.exclude", "replication.policy.class", "name"]) | st.text()
)
VALUES = st.text() | st.integers() | st.booleans() | st.none() | st.lists(st.text(), max_size=2)


@settings(EXAMPLES, max_examples=5 * REQUESTS)
@given(name=st.text(), changes=st.dictionaries(NAMES, VALUES, max_size=5))
def test_no_config_crashes(served: Client, name: str, changes: dict[str, Any]) -> None:
    body = {"name": name, "config": config("A", "B") | changes}
    plugin = "/connector-plugins/MirrorSourceConnector/config/validate"
    for answer in (
        served("POST", "/connectors", body),
        served("PUT", "/connectors/ab/config", config("A", "B") | changes),
        served("PUT", plugin, config("A", "B") | changes),
        served("GET", "/connectors?expand=info&expand=status"),
    ):
        assert answer.status < 500, answer.text
        assert SECRET not in answer.text


LINES = st.sampled_from(
    (
        b"GET / HTTP/1.1",
        b"POST /connectors HTTP/1.1",
        b"GET /%00%ff%2e%2e/ HTTP/1.1",
        b"Host: h",
        b"Content-Length: -1",
        b"Content-Length: 5",
        b"Transfer-Encoding: chunked",
        b"5\r\n{}{}{",
        b"ffffffffffffffff",
        b"Authorization: Basic \xff",
        b"Connection: Upgrade",
        b"Upgrade: websocket",
        b"Expect: 100-continue",
        b"",
    )
)
BYTES = st.binary(max_size=300) | st.lists(LINES | st.binary(max_size=20), max_size=12).map(b"\r\n".join)


@settings(EXAMPLES, max_examples=20 * REQUESTS)
@given(data=BYTES)
def test_random_bytes_are_no_request(served: Client, data: bytes) -> None:
    answer = _answer_to(served, data)
    assert b"Traceback" not in answer
    assert b"Internal error" not in answer
    assert answer[:7] in (b"", b"HTTP/1.")


def test_the_server_answers_after_all_that(served: Client) -> None:
    assert served("GET", "/connectors").status == 200


def test_random_bytes_are_no_handshake(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ca = issuer(tmp_path)
    tls = ListenerTls(KeyStore(PEM, str(ca.issue(tmp_path / "server.pem", "localhost"))))
    with serving(RestSettings((Listener("127.0.0.1", 0, tls),))) as client:
        for data in (
            b"",
            b"\x16\x03\x01\xff\xff",
            b"GET / HTTP/1.1\r\n\r\n",
            bytes(range(256)),
            b"\x16\x03\x01\x00\x05abcde",
        ):
            assert b"HTTP" not in _answer_to(client, data)
    assert not [record for record in caplog.records if record.exc_info], "no traceback in the log either"


def _answer_to(client: Client, data: bytes) -> bytes:
    """What is answered until the server closes the connection, or sends nothing after our end."""
    received = b""
    with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) as connected:
        try:
            connected.sendall(data)
            connected.shutdown(socket.SHUT_WR)
            while part := connected.recv(65536):
                received += part
        except ConnectionError:
            pass  # closed before everything was read
    return received
