"""JSON Web Tokens of an identity provider: signatures are checked with the keys that it publishes (JWKS)."""

import asyncio
import json
import logging
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from heliograph.model.rest_settings import Jwks
from heliograph.model.secret import Secret
from heliograph.wire.background import in_thread

log = logging.getLogger(__name__)

# Only signatures that need a private key: with HS256 the published key itself would be the secret.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_KEYS_LAST = 600.0
_FETCH_AT_MOST_EVERY = 10.0
_TIMEOUT = 5.0
_MAX_SIZE = 1 << 20
_MAX_KEYS = 100
_LEEWAY = 30.0  # seconds by which clocks may differ


class KeySetUnavailable(Exception):
    """The provider's keys cannot be fetched; the reason in one line."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The keys of another address, perhaps without TLS, are not those of the provider."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


class TokenChecker:
    """Fetches keys when they are needed: at first, when they are old, and for a token with an unknown key."""

    def __init__(self, jwks: Jwks, clock: Callable[[], float] = time.monotonic) -> None:
        self._jwks = jwks
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()

    async def claims(self, token: Secret) -> dict[str, Any] | None:
        """None for a token that is not valid. Raises KeySetUnavailable."""
        try:
            key_id = str(jwt.get_unverified_header(token.reveal()).get("kid", ""))
        except (jwt.PyJWTError, ValueError):
            return None
        key = await self._key(key_id)
        if key is None:
            return None
        try:
            return jwt.decode(
                token.reveal(),
                key,
                algorithms=_ALGORITHMS,
                audience=self._jwks.audience,
                issuer=self._jwks.issuer or None,
                leeway=_LEEWAY,
                options={"require": ["exp", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            log.debug("a token is refused: %s", error)
            return None

    def roles(self, claims: Mapping[str, Any]) -> list[str]:
        """The values of the role claim; [] without one."""
        value: Any = claims if self._jwks.role_claim else None
        for name in self._jwks.role_claim.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        values = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
        return [role for role in values if isinstance(role, str)]

    async def _key(self, key_id: str) -> jwt.PyJWK | None:
        async with self._fetching:
            is_old = self._clock() - self._fetched_at > _KEYS_LAST
            # Random key ids must not make us call the provider each time.
            may_fetch = self._clock() - self._tried_at > _FETCH_AT_MOST_EVERY
            if (is_old or key_id not in self._keys) and may_fetch:
                self._tried_at = self._clock()
                await self._fetch()
            if not self._keys:
                raise KeySetUnavailable(f"the keys at {self._jwks.url} could not be fetched")
            return self._keys.get(key_id) or (self._only_key() if not key_id else None)

    def _only_key(self) -> jwt.PyJWK | None:
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    async def _fetch(self) -> None:
        """Keys that were fetched before stay in use if this fails."""
        try:
            self._keys = await in_thread(self._download)
            self._fetched_at = self._clock()
        except (OSError, ValueError, jwt.PyJWTError) as error:
            log.warning("heliograph.rest.jwks.url: the keys at %s cannot be fetched: %s", self._jwks.url, error)

    def _download(self) -> dict[str, jwt.PyJWK]:
        context = ssl.create_default_context(cafile=self._jwks.ca or None)
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects)
        with opener.open(self._jwks.url, timeout=_TIMEOUT) as answer:
            document = json.loads(answer.read(_MAX_SIZE))
        listed = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(listed, list):
            raise ValueError("the answer is no key set")
        keys = {}
        for entry in listed[:_MAX_KEYS]:
            if isinstance(entry, dict) and entry.get("use", "sig") == "sig" and entry.get("kty") != "oct":
                try:
                    keys[str(entry.get("kid", ""))] = jwt.PyJWK(entry)
                except jwt.PyJWTError:
                    continue  # a kind of key that PyJWT does not know
        if not keys:
            raise ValueError("the answer has no key for signatures")
        return keys
