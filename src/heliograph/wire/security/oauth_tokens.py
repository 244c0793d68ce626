"""Access tokens for OAUTHBEARER: fetched with a client's id and secret, kept until most of their lifetime is over."""

import base64
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any

from heliograph.model.secret import Secret
from heliograph.model.security import OAuthLogin
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.security.http import opener
from heliograph.wire.security.tls import client_context

_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_LARGEST_ANSWER = 1 << 20
_MOST_OF_AN_ERROR = 200  # characters
_RETRY_AFTER = 30.0  # seconds that a valid token is used without asking for another one, while the endpoint is down
_MOST_TOKENS = 100


@dataclass(frozen=True, slots=True)
class _Token:
    text: Secret
    refresh_at: float
    expires_at: float


_tokens: dict[OAuthLogin, _Token] = {}
_locks: dict[OAuthLogin, threading.Lock] = defaultdict(threading.Lock)


def access_token(login: OAuthLogin) -> Secret:
    """A token that is valid for some time. Blocks: call it in a thread. Raises SecurityFailure."""
    if login.token is not None:
        return login.token
    if login.token_location:
        return _read_token(login.token_location)
    with _locks[login]:  # many connections are opened at once: one of them fetches the token
        known = _tokens.get(login)
        if known is not None and time.time() < known.refresh_at:
            return known.text
        try:
            token = _fetch(login)
        except SecurityFailure:
            if known is None or time.time() >= known.expires_at:
                raise
            token = replace(known, refresh_at=time.time() + _RETRY_AFTER)
        if len(_tokens) >= _MOST_TOKENS:  # of secrets that were rotated
            _tokens.clear()
        _tokens[login] = token
        return token.text


def forget_token(login: OAuthLogin) -> None:
    """A broker has refused it: it may have been revoked, or signed with a key that was replaced."""
    _tokens.pop(login, None)


def _read_token(location: str) -> Secret:
    try:
        return Secret(Path(location).read_text().strip())
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SecurityFailure(f"the token file {location} cannot be read: {reason}: check the path") from None


def _fetch(login: OAuthLogin) -> _Token:
    fields = {"grant_type": "client_credentials", "scope": login.scope, "audience": login.audience}
    body = urllib.parse.urlencode({name: value for name, value in fields.items() if value}).encode()
    headers = {
        "Authorization": f"Basic {_basic(login)}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    if urllib.parse.urlsplit(login.token_endpoint).scheme not in ("http", "https"):
        raise SecurityFailure(f"{_ENDPOINT}: {login.token_endpoint} is not an address: write https://HOST/PATH")
    request = urllib.request.Request(login.token_endpoint, body, headers)
    now = time.time()
    answer = _post(request, login)
    text = answer.get("access_token")
    if not isinstance(text, str) or not text:
        raise SecurityFailure(f"{_ENDPOINT}: {login.token_endpoint} returned no access_token: check the path")
    lifetime = _lifetime(answer.get("expires_in"), text, now)
    return _Token(Secret(text), now + lifetime * login.refresh_at, now + lifetime)


def _basic(login: OAuthLogin) -> str:
    secret = login.client_secret.reveal() if login.client_secret else ""
    parts = (login.client_id, secret)
    if login.url_encode_header:
        parts = urllib.parse.quote_plus(login.client_id), urllib.parse.quote_plus(secret)
    return base64.b64encode(":".join(parts).encode()).decode()


def _post(request: urllib.request.Request, login: OAuthLogin) -> dict[str, Any]:
    context = client_context(login.tls) if request.type == "https" else None
    timeout = max(login.connect_timeout, login.read_timeout)
    where = f"{_ENDPOINT}: {login.token_endpoint}"
    try:
        # As in Java, proxies of the environment are not used.
        with opener(context, uses_proxies=False).open(request, timeout=timeout) as response:
            answer = json.loads(response.read(_LARGEST_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            detail = _error_text(error)
        raise SecurityFailure(
            f"{where} answers {error.code}{detail}: check the client's id and secret, the scope and the path"
        ) from None
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        text = getattr(reason, "strerror", None) or reason
        raise SecurityFailure(f"{where} cannot be used: {text}: check the address and that the server is up") from None
    return answer if isinstance(answer, dict) else {}


def _error_text(error: urllib.error.HTTPError) -> str:
    """What the server says about the error, if it does so as RFC 6749 has it."""
    try:
        answer = json.loads(error.read(_LARGEST_ANSWER))
        text = " ".join(str(answer[name]) for name in ("error", "error_description") if name in answer)
    except (OSError, ValueError, TypeError):
        return ""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return f" ({printable[:_MOST_OF_AN_ERROR]})" if printable else ""


def _lifetime(expires_in: object, token: str, now: float) -> float:
    """In seconds: as the server says, else as the token itself does."""
    try:
        return max(0.0, float(expires_in))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return max(0.0, float(claims["exp"]) - now)
    except (IndexError, KeyError, TypeError, ValueError):
        return 0.0
