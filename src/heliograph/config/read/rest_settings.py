"""Where the REST API listens and who may use it: from a Connect worker's file, or the top level of any other."""

import os
import re
from pathlib import Path
from typing import TypeVar

from heliograph.config.declare import supported
from heliograph.config.declare.kinds import NAMES, SECRET, TEXT, TLS_VERSIONS, Kind, choice
from heliograph.config.declare.locations import TOP
from heliograph.config.declare.setting import Setting
from heliograph.config.messages import ConfigError, ErrorCollector
from heliograph.config.read.entry import top_key
from heliograph.config.read.settings import Settings
from heliograph.model.rest_settings import (
    NONE,
    REQUESTS_PER_SECOND,
    Jwks,
    Listener,
    ListenerTls,
    RestOptions,
    RestSettings,
)
from heliograph.model.secret import Secret
from heliograph.model.security import JKS, PEM, PKCS12, KeyStore, Tls, TrustStore

T = TypeVar("T")
_BASIC = "BasicAuthSecurityRestExtension"
_HTTPS = "listeners.https."
_LOGIN_CONFIG = re.compile(r"-Djava\.security\.auth\.login\.config=(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
_PASSWORD_FILE = re.compile(r"\bPropertyFileLoginModule\b[^;]*\bfile\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s;]+))")


def read_rest_settings(settings: Settings, options: RestOptions) -> RestSettings:
    """Raises ConfigError with all errors."""
    read = _Reader(settings)
    addresses = read.get(supported.LISTENERS, ()) if options.addresses is None else options.addresses
    tls = options.tls
    if tls is None and any(scheme == "https" for scheme, _host, _port in addresses):
        tls = read.tls()
    result = RestSettings(
        tuple(
            Listener(host, port, tls if scheme == "https" or options.tls is not None else None)
            for scheme, host, port in addresses
        ),
        options.users or read.users(),
        read.get(supported.REST_TOKENS, ""),
        read.get(supported.REST_ROLES, ""),
        read.jwks(),
        read.get(supported.REST_OPEN, frozenset()),
        read.get(supported.REST_ALLOW, frozenset()),
        read.get(supported.ALLOW_ORIGIN, ""),
        read.get(supported.ALLOW_METHODS, ()),
        read.get(supported.REST_REQUESTS_PER_SECOND, REQUESTS_PER_SECOND),
    )
    read.errors.raise_collected()
    return result


class _Reader:
    """Reads single values of the file and collects the errors."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.errors = ErrorCollector()
        # Connect takes all settings of a listener, or if there is none, all without the prefix.
        self._prefix = _HTTPS if any(key.name.startswith(_HTTPS) for key in settings.entries if not key.owner) else ""

    def get(self, setting: Setting[T], default: T) -> T:
        """`default` also takes the place of a value that has an error."""
        entry = self._settings.entries.get(top_key(setting.name))
        if entry is not None:
            with self.errors:
                return self._settings.parse(setting, entry)
        return default

    def users(self) -> str:
        """The file with the users, as Connect's extension finds it."""
        file = self.get(supported.REST_USERS, "")
        extensions = [name for name in self.get(supported.REST_EXTENSIONS, ()) if name]
        for name in extensions:
            if name.rpartition(".")[2] != _BASIC:
                self._error(
                    supported.REST_EXTENSIONS.name,
                    f"{name} cannot be loaded here: only Connect's {_BASIC} is supported",
                )
        if not file and any(name.rpartition(".")[2] == _BASIC for name in extensions):
            with self.errors:
                file = self._file_of_login_module()
        return file

    def _file_of_login_module(self) -> str:
        remedy = f"set {supported.REST_USERS.name} to the file with the lines user=password"
        named = _LOGIN_CONFIG.search(os.environ.get("KAFKA_OPTS", ""))
        if named is None:
            raise self._config_error(
                supported.REST_EXTENSIONS.name, f"KAFKA_OPTS names no java.security.auth.login.config: {remedy}"
            )
        jaas = "".join(filter(None, named.groups()))
        try:
            module = _PASSWORD_FILE.search(Path(jaas).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise self._config_error(supported.REST_EXTENSIONS.name, f"{jaas} cannot be read: {error}") from None
        if module is None:
            raise self._config_error(
                supported.REST_EXTENSIONS.name, f"{jaas} has no PropertyFileLoginModule with a file: {remedy}"
            )
        return "".join(filter(None, module.groups()))

    def jwks(self) -> Jwks | None:
        url = self.get(supported.REST_JWKS_URL, "")
        jwks = Jwks(
            url,
            self.get(supported.REST_JWKS_AUDIENCE, ""),
            self.get(supported.REST_JWKS_ISSUER, ""),
            self.get(supported.REST_JWKS_ROLE_CLAIM, ""),
            self.get(supported.REST_JWKS_CA, ""),
        )
        if not url:
            return None
        if not jwks.audience:
            text = "tokens that were issued for other services would be accepted: set"
            self._error(supported.REST_JWKS_URL.name, f"{text} {supported.REST_JWKS_AUDIENCE.name}")
        if not jwks.role_claim and not self.get(supported.REST_ROLES, ""):
            text = "everyone with a token would be an operator: set"
            self._error(
                supported.REST_JWKS_URL.name,
                f"{text} {supported.REST_JWKS_ROLE_CLAIM.name} or {supported.REST_ROLES.name}",
            )
        return jwks

    def tls(self) -> ListenerTls | None:
        location, key = self._text("ssl.keystore.location"), self._secret("ssl.keystore.key")
        if not location and key is None:
            self._error(
                supported.LISTENERS.name,
                f"https needs a certificate: set {_HTTPS}ssl.keystore.location, or ssl.keystore.location",
            )
            return None
        store = KeyStore(
            self._store_type("ssl.keystore.type"),
            location,
            self._secret("ssl.keystore.password"),
            self._secret("ssl.key.password"),
            key,
            self._secret("ssl.keystore.certificate.chain"),
        )
        auth = self._of_prefix("ssl.client.auth", supported.SSL_CLIENT_AUTH.kind, NONE)
        trust = TrustStore(
            self._store_type("ssl.truststore.type"),
            self._text("ssl.truststore.location"),
            self._secret("ssl.truststore.password"),
            self._secret("ssl.truststore.certificates"),
        )
        if auth != NONE and not trust.location and trust.certificates is None:
            self._error(
                f"{self._prefix}ssl.client.auth", f"no issuer is trusted: set {self._prefix}ssl.truststore.location"
            )
        protocols = self._of_prefix("ssl.enabled.protocols", TLS_VERSIONS, ()) or Tls().protocols
        suites = self._of_prefix("ssl.cipher.suites", NAMES, ())
        return ListenerTls(store, "", trust if auth != NONE else None, auth, protocols, suites)

    def _text(self, name: str) -> str:
        return self._of_prefix(name, TEXT, "")

    def _secret(self, name: str) -> Secret | None:
        return self._of_prefix(name, SECRET, None)

    def _store_type(self, name: str) -> str:
        return self._of_prefix(name, choice(JKS, PKCS12, PEM), JKS)

    def _of_prefix(self, name: str, kind: Kind[T], default: T) -> T:
        return self.get(Setting(f"{self._prefix}{name}", kind, None, TOP), default)

    def _error(self, name: str, text: str) -> None:
        self.errors.add(self._config_error(name, text))

    def _config_error(self, name: str, text: str) -> ConfigError:
        entry = self._settings.entries.get(top_key(name))
        return (
            ConfigError(f"{self._settings.file}: {name}: {text}")
            if entry is None
            else self._settings.error(entry, text)
        )
