"""Calls of a running Heliograph's REST API, with the credentials of a file or of the environment."""

import base64
import json
import os
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from heliograph.cli.screen import fail
from heliograph.config import ConfigError
from heliograph.config.read.properties import read
from heliograph.model.rest_settings import Listener
from heliograph.model.secret import Secret

DEFAULT = "http://127.0.0.1:8083"
_TIMEOUT = 30.0
_USER, _PASSWORD, _TOKEN = "HELIOGRAPH_REST_USER", "HELIOGRAPH_REST_PASSWORD", "HELIOGRAPH_REST_TOKEN"

Rest = Annotated[
    str, typer.Option("--rest", metavar="URL", envvar="HELIOGRAPH_REST", help="Address of Heliograph's REST API.")
]
Ca = Annotated[
    Path | None,
    typer.Option(metavar="FILE", envvar="HELIOGRAPH_REST_CA", help="Certificates to trust at an https address (PEM)."),
]
Cert = Annotated[
    Path | None, typer.Option(metavar="FILE", envvar="HELIOGRAPH_REST_CERT", help="A client certificate (PEM).")
]
Key = Annotated[
    Path | None,
    typer.Option(metavar="FILE", envvar="HELIOGRAPH_REST_KEY", help="Its private key, if it is in another file (PEM)."),
]
Credentials = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="HELIOGRAPH_REST_CREDENTIALS",
        help=f"A file with user=NAME and password=PASSWORD, or token=TOKEN. Without it, {_USER}, {_PASSWORD} and "
        f"{_TOKEN} of the environment.",
    ),
]


class NoAnswer(Exception):
    """The reason in one line, and the exit status for it."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the credentials to another address."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class RestClient:
    """`tls` is None for plain HTTP."""

    url: str
    authorization: Secret | None = None
    tls: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The decoded JSON of the answer; None for an empty answer. Prints an error and ends the command."""
        try:
            return self.answer_of(method, path, body)
        except NoAnswer as error:
            fail(str(error), error.status)

    def answer_of(self, method: str, path: str, body: object = None) -> Any:
        """The same, but raises NoAnswer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        if self.authorization is not None:
            headers["Authorization"] = self.authorization.reveal()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        try:
            opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=self.tls), _NoRedirects)
            with opener.open(request, timeout=_TIMEOUT) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            raise NoAnswer(_message(error, self.authorization is not None), 1) from None
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise NoAnswer(f"no answer from {self.url}: {reason}. {_hint(reason)}", 2) from None


def client(
    rest: str,
    ca: Path | None = None,
    cert: Path | None = None,
    key: Path | None = None,
    credentials: Path | None = None,
) -> RestClient:
    """Prints an error and ends the command if a file cannot be used."""
    url = (rest if "://" in rest else f"http://{rest}").rstrip("/")
    parts = urlsplit(url)
    if parts.username or parts.password:
        fail("--rest: everyone on this machine can read a password in a command line: use --credentials FILE", 2)
    authorization = _authorization(credentials)
    if parts.scheme != "https":
        if authorization is not None and not Listener(parts.hostname or "", 0).is_loopback:
            typer.echo(f"heliograph: warning: the login is sent to {url} without TLS; use https://", err=True)
        return RestClient(url, authorization)
    try:
        tls = ssl.create_default_context(cafile=ca)
        if cert is not None:
            # Without a password OpenSSL would ask on the terminal.
            tls.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        fail(f"--ca, --cert or --key: a file cannot be used: {error}", 2)
    return RestClient(url, authorization, tls)


def _authorization(credentials: Path | None) -> Secret | None:
    """The value of the header. A file wins over the environment."""
    if credentials is None:
        given = {name: os.environ.get(variable, "") for name, variable in _VARIABLES.items()}
    else:
        try:
            given = {entry.key: entry.reveal() for entry in read(credentials)}
        except ConfigError as error:
            fail(f"--credentials: {error}", 2)
    if token := given.get("token", ""):
        return Secret(f"Bearer {token.strip()}")
    if user := given.get("user", ""):
        text = f"{user}:{given.get('password', '')}"
        return Secret(f"Basic {base64.b64encode(text.encode()).decode()}")
    if credentials is not None:
        fail(f"--credentials: {credentials} has neither user=NAME and password=PASSWORD nor token=TOKEN", 2)
    return None


_VARIABLES = {"user": _USER, "password": _PASSWORD, "token": _TOKEN}


def _message(error: urllib.error.HTTPError, has_login: bool) -> str:
    try:
        text = str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):
        text = f"{error.code} {error.reason}"
    if error.code == 401:
        remedy = "is wrong" if has_login else "is needed: --credentials FILE names it"
        return f"{text} The login {remedy}"
    return text


def _hint(reason: object) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return "Does --ca name the certificates of its issuer?"
    if isinstance(reason, ssl.SSLError):
        return "Is the address an https:// one, and does it ask for a client certificate (--cert, --key)?"
    return "Is Heliograph running, and is this its address (--rest)?"
