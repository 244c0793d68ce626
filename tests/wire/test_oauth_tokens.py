"""Access tokens: fetched once for many connections, renewed in time, used on while the server is down."""

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest

from heliograph.model.secret import Secret
from heliograph.model.security import OAuthLogin
from heliograph.wire.security import oauth_tokens
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.security.oauth_tokens import access_token, forget_token


@dataclass
class TokenServer:
    """Answers with `status` and `answer`; `{number}` in a token counts the requests."""

    url: str = ""
    status: int = 200
    answer: dict[str, Any] = field(default_factory=lambda: {"access_token": "token-{number}", "expires_in": 100})
    requests: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)  # Authorization, and the form


@pytest.fixture
def server() -> Iterator[TokenServer]:
    state = TokenServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            state.requests.append((self.headers["Authorization"], form))
            self.send_response(state.status)
            if state.status == 302:
                self.send_header("Location", state.url)
            self.end_headers()
            self.wfile.write(json.dumps(state.answer).replace("{number}", str(len(state.requests))).encode())

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
    state.url = f"http://127.0.0.1:{http.server_port}/token"
    yield state
    http.shutdown()
    http.server_close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    time = SimpleNamespace(now=1_000_000.0)
    monkeypatch.setattr(oauth_tokens, "time", SimpleNamespace(time=lambda: time.now))
    return time


def _login(server: TokenServer, **more: Any) -> OAuthLogin:
    return OAuthLogin(server.url, "me", Secret("my secret/+"), **more)


def test_id_and_secret_are_sent_as_kafka_does(server: TokenServer) -> None:
    assert access_token(_login(server, scope="a b", audience="kafka")).reveal() == "token-1"
    encoded = access_token(_login(server, url_encode_header=True))
    assert encoded.reveal() == "token-2"
    (plain, form), (quoted, bare) = server.requests
    assert base64.b64decode(plain.removeprefix("Basic ")) == b"me:my secret/+"
    assert base64.b64decode(quoted.removeprefix("Basic ")) == b"me:my+secret%2F%2B"
    assert form == {"grant_type": ["client_credentials"], "scope": ["a b"], "audience": ["kafka"]}
    assert bare == {"grant_type": ["client_credentials"]}


def test_a_token_is_kept_until_most_of_its_lifetime_is_over(server: TokenServer, clock: SimpleNamespace) -> None:
    login = _login(server)
    assert access_token(login).reveal() == "token-1"
    clock.now += 79
    assert access_token(login).reveal() == "token-1"
    clock.now += 2
    assert access_token(login).reveal() == "token-2"


def test_many_connections_at_once_fetch_one_token(server: TokenServer) -> None:
    login = _login(server)
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(access_token(login).reveal())) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tokens == ["token-1"] * 10


def test_a_valid_token_is_used_while_the_server_is_down(server: TokenServer, clock: SimpleNamespace) -> None:
    login = _login(server)
    access_token(login)
    server.status, server.answer = 503, {}
    clock.now += 85
    for _ in range(5):  # one of them asks for another token
        assert access_token(login).reveal() == "token-1"
    assert len(server.requests) == 2
    clock.now += 31
    with pytest.raises(SecurityFailure, match=r"answers 503: check the client's id and secret"):
        access_token(login)


def test_the_lifetime_may_be_in_the_token_itself(server: TokenServer, clock: SimpleNamespace) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": clock.now + 1000}).encode()).decode().rstrip("=")
    server.answer = {"access_token": f"head.{claims}.signature-{{number}}"}
    login = _login(server)
    first = access_token(login)
    clock.now += 790
    assert access_token(login) == first
    clock.now += 20
    assert access_token(login) != first


def test_a_token_that_a_broker_refused_is_not_used_again(server: TokenServer) -> None:
    login = _login(server)
    access_token(login)
    forget_token(login)
    assert access_token(login).reveal() == "token-2"


def test_what_the_server_says_about_an_error_is_reported(server: TokenServer) -> None:
    server.status = 401
    server.answer = {"error": "invalid_client", "error_description": "Invalid client\nor secret"}
    with pytest.raises(SecurityFailure) as failure:
        access_token(_login(server))
    assert str(failure.value) == (
        f"sasl.oauthbearer.token.endpoint.url: {server.url} answers 401 (invalid_client Invalid client or secret): "
        "check the client's id and secret, the scope and the path"
    )


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://127.0.0.1:1/token", "Connection refused: check the address and that the server is up"),
        ("ftp://127.0.0.1/token", "is not an address: write https://HOST/PATH"),
        ("127.0.0.1/token", "is not an address: write https://HOST/PATH"),
    ],
)
def test_a_server_that_cannot_be_reached(url: str, text: str, server: TokenServer) -> None:
    with pytest.raises(SecurityFailure, match=text):
        access_token(replace(_login(server), token_endpoint=url))


def test_credentials_do_not_follow_a_redirect(server: TokenServer) -> None:
    server.status = 302
    with pytest.raises(SecurityFailure, match="answers 302"):
        access_token(_login(server))
    assert len(server.requests) == 1


def test_an_answer_without_a_token(server: TokenServer) -> None:
    server.answer = {}
    with pytest.raises(SecurityFailure, match="returned no access_token"):
        access_token(_login(server))


def test_a_token_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    login = OAuthLogin(token_location=str(file))
    with pytest.raises(SecurityFailure, match="cannot be read: No such file"):
        access_token(login)
    for text in ("one", "two"):
        file.write_text(f"{text}\n")
        assert access_token(login) == Secret(text)
