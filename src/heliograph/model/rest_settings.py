"""Where the REST API listens and who may use it, as plain values. The names are those of a Connect worker's settings.

Files are named, not read: they are read again when they change, so that renewed certificates and new users take effect
without a restart.
"""

from dataclasses import dataclass
from ipaddress import ip_address

from heliograph.model.security import KeyStore, TrustStore

NONE, REQUESTED, REQUIRED = "none", "requested", "required"
CLASSES, PROVIDERS, FILES = "classes", "providers", "files"
REQUESTS_PER_SECOND = 200


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """`listeners.https.ssl.*`. `key_location` is a PEM file with the private key, if the key store has only
    certificates. `trust` is None if no client can have a certificate."""

    key: KeyStore
    key_location: str = ""
    trust: TrustStore | None = None
    client_auth: str = NONE
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listener:
    """`host` is empty for all interfaces. `tls` is None for plain HTTP."""

    host: str
    port: int
    tls: ListenerTls | None = None

    @property
    def is_loopback(self) -> bool:
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class RestOptions:
    """What a command line says instead of the file: scheme, host and port of each address; TLS for all of them; the
    file of users."""

    addresses: tuple[tuple[str, str, int], ...] | None = None
    tls: ListenerTls | None = None
    users: str = ""


@dataclass(frozen=True, slots=True)
class Jwks:
    """Where the keys are with which JSON Web Tokens are signed, and what a token must contain. `role_claim` is the
    claim with the caller's roles, in dots if it is nested; `ca` is a PEM file of certificates to trust."""

    url: str
    audience: str
    issuer: str = ""
    role_claim: str = ""
    ca: str = ""


@dataclass(frozen=True, slots=True)
class RestSettings:
    """`users`, `tokens` and `roles` are files; empty: none. `open_paths` need no login. `allowed` is what a posted
    config may contain: classes, providers, files."""

    listeners: tuple[Listener, ...] = ()
    users: str = ""
    tokens: str = ""
    roles: str = ""
    jwks: Jwks | None = None
    open_paths: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    allow_origin: str = ""
    allow_methods: tuple[str, ...] = ()
    requests_per_second: int = REQUESTS_PER_SECOND

    @property
    def takes_credentials(self) -> bool:
        """Whether callers can log in with an Authorization header."""
        return bool(self.users or self.tokens or self.jwks)

    @property
    def needs_login(self) -> bool:
        return self.takes_credentials or self.takes_certificates

    @property
    def takes_certificates(self) -> bool:
        return any(listener.tls is not None and listener.tls.client_auth != NONE for listener in self.listeners)
