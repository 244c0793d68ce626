"""A token endpoint on loopback for OAUTHBEARER: OAuth 2.0's client credentials grant, with tokens that brokers verify.

It runs in a thread of this process, and is for tests and demos.
"""

import base64
import hmac
import json
import secrets
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from heliograph.sandbox.ports import HOST

AUDIENCE = "kafka"
_PATH = "/token"


class TokenServer:
    """Hands out a token to each client in `clients` (id to secret) that knows its secret.

    A test may change `clients`, `lifetime` (seconds) and `failure` at any time. With `failure`, an HTTP status, every
    request is answered with it. `pem` is a file with a key and a certificate, for an endpoint with TLS.
    """

    def __init__(self, clients: dict[str, str], *, lifetime: float = 3600, pem: Path | None = None) -> None:
        self.clients = clients
        self.lifetime = lifetime
        self.failure: int | None = None
        self.issued = 0
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._key_id = secrets.token_hex(8)
        self._server = _Server((HOST, 0), _Handler)
        self._server.tokens = self
        scheme = "http"
        if pem is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            # The handshake takes place in the thread of the request: a client that does not speak TLS blocks nobody.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            scheme = "https"
        self.issuer = f"{scheme}://{HOST}:{self._server.server_port}"
        self.url = self.issuer + _PATH
        threading.Thread(target=self._server.serve_forever, name="token endpoint", daemon=True).start()

    def close(self) -> None:
        """Refuses connections from now on."""
        self._server.shutdown()
        self._server.server_close()

    def key_set(self) -> str:
        """The JSON Web Key Set with which brokers verify tokens."""
        key = jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**key, "kid": self._key_id, "use": "sig", "alg": "RS256"}]})

    def token(self, client: str, **claims: object) -> str:
        """A token for the client; `claims` are added, or replace those of that name."""
        now = time.time()
        usual = {"sub": client, "aud": AUDIENCE, "iss": self.issuer, "iat": int(now), "exp": int(now + self.lifetime)}
        headers = {"kid": self._key_id}
        self.issued += 1
        return jwt.encode({**usual, "scope": AUDIENCE, **claims}, self._key, algorithm="RS256", headers=headers)

    def respond(self, authorization: str | None, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """The status and the content of the answer to a request."""
        if self.failure is not None:
            return self.failure, {"error": "temporarily_unavailable"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        client, secret = _credentials(authorization, form)
        if client not in self.clients or not hmac.compare_digest(secret.encode(), self.clients[client].encode()):
            return 401, {"error": "invalid_client"}
        return 200, {
            "access_token": self.token(client),
            "token_type": "Bearer",
            "expires_in": int(self.lifetime),
            "scope": AUDIENCE,
        }


def _credentials(authorization: str | None, form: dict[str, list[str]]) -> tuple[str, str]:
    """In the header, as most clients send them, or in the form."""
    if authorization and authorization.startswith("Basic "):
        try:
            client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        except ValueError:
            return "", ""
        return client, secret
    return form.get("client_id", [""])[0], form.get("client_secret", [""])[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tokens: TokenServer


class _Handler(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path != _PATH:
            self.send_error(404)
            return
        status, content = cast(_Server, self.server).tokens.respond(self.headers.get("Authorization"), parse_qs(body))
        answer = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the base class would write to stderr."""
