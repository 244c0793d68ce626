"""Who sends a request: by name and password, bearer token or client certificate."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping

from heliograph.config import ConfigError
from heliograph.config.read.properties import read
from heliograph.model.rest_settings import RestSettings
from heliograph.model.secret import Secret
from heliograph.rest.json_web_tokens import TokenChecker
from heliograph.rest.passwords import hashed, is_hashed, matches
from heliograph.rest.renewed_file import Renewed
from heliograph.rest.roles import ANYONE, EVERYONE, OPERATOR, Caller, with_roles
from heliograph.wire.background import in_thread

_REMEMBERED = 1000  # hashed passwords that need not be hashed again
_HASHED_TOKEN = "sha256:"


class Authenticator:
    """Reads the files of users, tokens and roles; raises ValueError if one cannot be used."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._users = _secrets(settings.users, "heliograph.rest.users")
        self._tokens = _secrets(settings.tokens, "heliograph.rest.tokens")
        self._roles = _roles(settings.roles)
        self._checker = TokenChecker(settings.jwks) if settings.jwks is not None else None
        self._remembered: set[bytes] = set()
        self._own_key = os.urandom(32)
        self._no_password = Secret(hashed(Secret(os.urandom(16).hex()))) if settings.users else Secret("")
        self._hashing = asyncio.Semaphore(2)

    @property
    def challenges(self) -> list[str]:
        """The values of WWW-Authenticate."""
        basic = ['Basic realm="heliograph", charset="UTF-8"'] if self._settings.users else []
        return basic + (["Bearer"] if self._settings.tokens or self._settings.jwks else [])

    async def caller(self, authorization: str, subject: str) -> Caller | None:
        """`subject` is that of a verified client certificate; empty if there is none. None if the caller must log in.
        Raises KeySetUnavailable."""
        if not self._settings.needs_login:
            return ANYONE
        kind, _, credentials = authorization.partition(" ")
        if kind.lower() == "basic" and self._users is not None:
            return await self._user(credentials.strip())
        if kind.lower() == "bearer":
            return await self._bearer(Secret(credentials.strip()))
        return self._owner(subject) if subject else None

    def _owner(self, subject: str) -> Caller | None:
        """A certificate alone is enough if there is no other way to log in, or if the file of roles has its subject: a
        worker that asks for a certificate and a password gets both."""
        roles = self._roles.get() if self._roles is not None else {}
        if self._settings.takes_credentials and subject not in roles:
            return None
        return self._with_roles(subject)

    async def _user(self, credentials: str) -> Caller | None:
        try:
            name, colon, password = base64.b64decode(credentials, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        if not colon or not await self._is_password(name, Secret(password)):
            return None
        return self._with_roles(name)

    async def _is_password(self, name: str, password: Secret) -> bool:
        assert self._users is not None
        users = self._users.get()
        # An unknown name takes as long as a wrong password.
        default = self._no_password if any(map(is_hashed, users.values())) else Secret("")
        stored = users.get(name, default)
        if not is_hashed(stored):
            return matches(password, stored) and name in users
        text = "\0".join((name, password.reveal(), stored.reveal()))
        digest = hmac.digest(self._own_key, text.encode(), "sha256")
        if digest in self._remembered:
            return True
        async with self._hashing:
            is_right = await in_thread(lambda: matches(password, stored)) and name in users
        if is_right:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered.add(digest)
        return is_right

    async def _bearer(self, token: Secret) -> Caller | None:
        if self._tokens is not None:
            given = _digest(token)
            for name, stored in self._tokens.get().items():
                if hmac.compare_digest(given, _digest_of_stored(stored)):
                    return self._with_roles(name)
        claims = await self._checker.claims(token) if self._checker is not None else None
        if claims is None or self._checker is None:
            return None
        return self._with_roles(str(claims["sub"]), self._checker.roles(claims))

    def _with_roles(self, name: str, claimed: list[str] | None = None) -> Caller:
        """Roles of the file, or of the token. Other words in a token's claim are for other services."""
        if self._roles is None and claimed is None:
            return with_roles(name, [OPERATOR])
        roles = self._roles.get() if self._roles is not None else {}
        granted = [*roles.get(name, ()), *roles.get(EVERYONE, ())]
        for role in claimed or ():
            try:
                with_roles(name, [role])
                granted.append(role)
            except ValueError:
                continue
        return with_roles(name, granted)


def _secrets(file: str, setting: str) -> Renewed[dict[str, Secret]] | None:
    def load() -> dict[str, Secret]:
        entries = {name: Secret(text) for name, text in _lines(file).items()}
        # Connect lets everyone in if its file is empty.
        if not entries or not all(name and secret.reveal() for name, secret in entries.items()):
            raise ValueError(f"{setting}: {file} has no line name=secret, or an empty one")
        return entries

    return Renewed([file], load, f"{setting}: {file}") if file else None


def _roles(file: str) -> Renewed[dict[str, list[str]]] | None:
    def load() -> dict[str, list[str]]:
        roles = {name: text.split(",") for name, text in _lines(file).items()}
        for name, granted in roles.items():
            try:
                with_roles(name, granted)
            except ValueError as error:
                raise ValueError(f"heliograph.rest.roles: {file}: {name}: {error}") from None
        return roles

    return Renewed([file], load, f"heliograph.rest.roles: {file}") if file else None


def _lines(file: str) -> Mapping[str, str]:
    try:
        return {entry.key: entry.reveal() for entry in read(file)}
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _digest(token: Secret) -> bytes:
    return hashlib.sha256(token.reveal().encode()).digest()


def _digest_of_stored(stored: Secret) -> bytes:
    text = stored.reveal()
    if text.startswith(_HASHED_TOKEN):
        try:
            return bytes.fromhex(text.removeprefix(_HASHED_TOKEN))
        except ValueError:
            return b""
    return _digest(stored)
