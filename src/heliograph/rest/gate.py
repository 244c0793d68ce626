"""What every request passes before the application sees it: limits, and the caller's login and role.

The order is on purpose: what costs least comes first, and the body is read only for callers who may send it.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import IPv6Address
from math import ceil
from typing import Any
from urllib.parse import urlsplit

from heliograph.config.messages import one_line
from heliograph.model.rest_settings import RestSettings
from heliograph.rest.authentication import Authenticator
from heliograph.rest.http_connection import CERTIFICATE_SUBJECT
from heliograph.rest.json_web_tokens import KeySetUnavailable
from heliograph.rest.rate_limit import RateLimit
from heliograph.rest.roles import VIEWER, Caller, refusal, with_roles

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CALLER = "heliograph.caller"  # in the state of a request
MAX_URL, MAX_BODY = 8 * 1024, 1024 * 1024
_BODY_WITHIN = 30.0
_SEND_WITHIN = 60.0
_WRONG_LOGIN_COST = 20.0  # requests: passwords cannot be tried at the full rate
_READING = ("GET", "HEAD", "OPTIONS")
_READER = with_roles("", [VIEWER])  # of a path that needs no login
_DOCS = "/heliograph/v1/docs"
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_NO_CONTENT = b"default-src 'none'; frame-ancestors 'none'"
_SWAGGER = (
    b"default-src 'none'; script-src https://cdn.jsdelivr.net 'unsafe-inline'; style-src https://cdn.jsdelivr.net "
    b"'unsafe-inline'; img-src data: https://fastapi.tiangolo.com; connect-src 'self'; frame-ancestors 'none'"
)


class Refused(Exception):
    """An answer instead of the application's."""

    def __init__(self, status: int, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Gate:
    """`flow_of_connector` returns the name of a connector's flow, None if there is no such connector."""

    def __init__(
        self,
        app: App,
        settings: RestSettings,
        authenticator: Authenticator,
        flow_of_connector: Callable[[str], str | None],
    ) -> None:
        self._app = app
        self._settings = settings
        self._authenticator = authenticator
        self._flow_of_connector = flow_of_connector
        self._rate = RateLimit(settings.requests_per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        out = _Answer(send, _headers_for(scope["path"]))
        try:
            await self._check(scope)
            await self._app(scope, await _whole_body(scope, receive), out)
        except Refused as refused:
            await out.refuse(refused, _has_body(scope))
        except Exception:
            if not out.has_started:
                raise
            # FastAPI raises an error again that it has answered and logged.

    async def _check(self, scope: Scope) -> None:
        address = _address(scope)
        if wait := self._rate.wait(address):
            raise Refused(429, "Too many requests from this address", ("retry-after", str(ceil(wait))))
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL:
            raise Refused(414, f"The URL has more than {MAX_URL} bytes")
        _check_origin(scope, self._settings.allow_origin)
        if scope["path"] in self._settings.open_paths and scope["method"] in _READING:
            scope.setdefault("state", {})[CALLER] = _READER
            return
        caller = await self._caller(scope)
        if caller is None:
            self._rate.wait(address, _WRONG_LOGIN_COST)
            if _header(scope, b"authorization"):
                log.info("a login to the REST API from %s is refused: name, password or token is wrong", address)
            challenges = [("www-authenticate", challenge) for challenge in self._authenticator.challenges]
            raise Refused(401, "User cannot access the resource.", *challenges)
        if reason := refusal(caller, scope["method"], scope["path"], self._flow_of_connector):
            raise Refused(403, reason)
        if caller.name and scope["method"] not in _READING:
            log.info("%s calls %s %s", one_line(caller.name), scope["method"], one_line(scope["path"]))
        scope.setdefault("state", {})[CALLER] = caller

    async def _caller(self, scope: Scope) -> Caller | None:
        subject = scope.get("state", {}).get(CERTIFICATE_SUBJECT, "")
        try:
            return await self._authenticator.caller(_header(scope, b"authorization"), subject)
        except KeySetUnavailable as error:
            raise Refused(503, f"The token cannot be checked now: {error}", ("retry-after", "10")) from None


class _Answer:
    """Sends an answer with the headers that every answer has. A client that does not read it is given up."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._send = send
        self._headers = headers
        self.has_started = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            given = {name.lower() for name, _value in message.get("headers", ())}
            added = [(name, value) for name, value in self._headers if name not in given]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        async with asyncio.timeout(_SEND_WITHIN):
            await self._send(message)

    async def refuse(self, refused: Refused, has_body: bool) -> None:
        body = json.dumps({"error_code": refused.status, "message": str(refused)}).encode()
        headers = [(name.encode(), value.encode()) for name, value in refused.headers]
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if has_body:  # it is not read
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def _headers_for(path: str) -> list[tuple[bytes, bytes]]:
    return [*_HEADERS, (b"content-security-policy", _SWAGGER if path == _DOCS else _NO_CONTENT)]


def _address(scope: Scope) -> str:
    """An IPv6 client has a whole network of addresses."""
    host = str((scope.get("client") or ("",))[0])
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or int(address) >> 64)


def _check_origin(scope: Scope, allowed: str) -> None:
    """A web page elsewhere must not change anything in the name of the one who looks at it: a browser asks first for
    most requests, but not for a POST without a body."""
    origin = _header(scope, b"origin")
    if not origin or scope["method"] in _READING or allowed == "*" or origin in allowed.replace(" ", "").split(","):
        return
    if urlsplit(origin).netloc.lower() != _header(scope, b"host").lower():
        raise Refused(403, "Requests from this web page are not allowed: access.control.allow.origin does not name it")


async def _whole_body(scope: Scope, receive: Receive) -> Receive:
    """Reads the body, then returns a `receive` that has it."""
    if not _has_body(scope):
        return receive
    length = _header(scope, b"content-length")
    body = bytearray()
    if length.isdigit() and int(length) > MAX_BODY:
        raise _too_large()
    try:
        async with asyncio.timeout(_BODY_WITHIN):
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return _once(message, receive)
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MAX_BODY:
                    raise _too_large()
    except TimeoutError:
        raise Refused(408, f"The body was not complete within {_BODY_WITHIN:g} s") from None
    return _once({"type": "http.request", "body": bytes(body), "more_body": False}, receive)


def _once(message: MutableMapping[str, Any], receive: Receive) -> Receive:
    messages = [message]

    async def next_message() -> MutableMapping[str, Any]:
        return messages.pop() if messages else await receive()

    return next_message


def _too_large() -> Refused:
    return Refused(413, f"The body has more than {MAX_BODY} bytes")


def _has_body(scope: Scope) -> bool:
    return _header(scope, b"content-length") not in ("", "0") or bool(_header(scope, b"transfer-encoding"))


def _header(scope: Scope, name: bytes) -> str:
    return next((bytes(value).decode("latin-1") for key, value in scope["headers"] if key == name), "")
