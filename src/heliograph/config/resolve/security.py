"""From settings to the security of one client of a cluster: TLS, and how it logs in.

Which settings a client reads is `locations.of_security`. Files are not opened here: they may be on another machine.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from heliograph.config.declare import locations, supported
from heliograph.config.declare.locations import SettingLocation
from heliograph.config.declare.setting import Setting
from heliograph.config.messages import ConfigNotice, ErrorCollector
from heliograph.config.read import jaas
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.logins import CALLBACK_HANDLERS, login_of
from heliograph.model import security
from heliograph.model.flow import Cluster
from heliograph.model.secret import Secret
from heliograph.model.security import KeyStore, Sasl, Security, Tls, TrustStore

T = TypeVar("T")
SOURCE_ADMIN, SOURCE_CONSUMER = "source.admin", "source.consumer"
TARGET_ADMIN, TARGET_PRODUCER = "target.admin", "target.producer"
ROLES = (SOURCE_ADMIN, SOURCE_CONSUMER, TARGET_ADMIN, TARGET_PRODUCER)
_OF_TLS = tuple(setting for name, setting in supported.SUPPORTED.items() if name.startswith("ssl."))
_OF_SASL = tuple(setting for name, setting in supported.SUPPORTED.items() if name.startswith("sasl."))


@dataclass(frozen=True, slots=True)
class Client:
    """One client of a flow, or of a cluster: where its settings are. Collects the errors."""

    settings: Settings
    pair: tuple[str, str]
    of: tuple[SettingLocation, ...]
    errors: ErrorCollector

    def find(self, setting: Setting[object]) -> FileEntry | None:
        return self.settings.find(setting, *self.pair, self.of)

    def get(self, setting: Setting[T]) -> T:
        return self.settings.get(setting, *self.pair, self.of)

    def if_set(self, setting: Setting[T]) -> T | None:
        entry = self.find(setting)
        return None if entry is None or not entry.reveal().strip() else self.settings.parse(setting, entry)

    def add_error(self, setting: Setting[object], text: str) -> None:
        """About a setting, or about the protocol that needs it if it is not set."""
        entry = self.find(setting)
        if entry is not None:
            self.errors.add(self.settings.error(entry, text))
            return
        protocol = self.find(supported.SECURITY_PROTOCOL)
        assert protocol is not None, "nothing is needed by default"
        name = protocol.spelt(protocol.key.removesuffix(supported.SECURITY_PROTOCOL.name) + setting.name)
        self.errors.add(self.settings.error(protocol, f"{protocol.value} needs {name}, which {text}"))


def client(settings: Settings, role: str, pair: tuple[str, str], errors: ErrorCollector) -> Client:
    return Client(settings, pair, locations.of_security(role, settings.is_of_connectors), errors)


def secured(cluster: Cluster, of: Client) -> Cluster:
    """The cluster as the client reaches it. It is not to be used if there are errors."""
    return replace(cluster, security=_security(of)) if cluster.bootstrap_servers else cluster


def _security(of: Client) -> Security:
    protocol = of.get(supported.SECURITY_PROTOCOL)
    has_tls, has_sasl = _parts(protocol)
    _check_references(of, (*(_OF_TLS if has_tls else ()), *(_OF_SASL if has_sasl else ())))
    return Security(_tls(of) if has_tls else None, _sasl(of) if has_sasl else None)


def _parts(protocol: str) -> tuple[bool, bool]:
    return protocol.endswith(security.SSL), protocol.startswith("SASL_")


def _check_references(of: Client, used: tuple[Setting[object], ...]) -> None:
    if of.settings.may_lack_secrets:
        return
    for setting in used:
        entry = of.find(setting)
        for text in of.settings.unresolved(entry) if entry is not None else ():
            of.add_error(setting, text)


def _tls(of: Client) -> Tls:
    highest = of.get(supported.SSL_PROTOCOL)
    enabled = of.get(supported.SSL_ENABLED_PROTOCOLS) or Tls().protocols
    protocols = tuple(version for version in enabled if version in highest)
    if not protocols:
        text = f"allows only {', '.join(enabled)}, which is above ssl.protocol: change one of them"
        of.add_error(supported.SSL_ENABLED_PROTOCOLS, text)
    return Tls(
        _trust_store(of),
        _key_store(of),
        of.get(supported.SSL_ENDPOINT_IDENTIFICATION),
        protocols,
        of.get(supported.SSL_CIPHER_SUITES),
    )


def _trust_store(of: Client) -> TrustStore:
    store = TrustStore(
        of.get(supported.SSL_TRUSTSTORE_TYPE),
        of.if_set(supported.SSL_TRUSTSTORE_LOCATION) or "",
        of.if_set(supported.SSL_TRUSTSTORE_PASSWORD),
        of.if_set(supported.SSL_TRUSTSTORE_CERTIFICATES),
    )
    if store.certificates is not None:
        if store.type != security.PEM:
            of.add_error(supported.SSL_TRUSTSTORE_CERTIFICATES, _needs_pem("truststore", store.type))
        if store.location:
            of.add_error(supported.SSL_TRUSTSTORE_LOCATION, "is set beside ssl.truststore.certificates: remove one")
    return store


def _key_store(of: Client) -> KeyStore | None:
    store = KeyStore(
        of.get(supported.SSL_KEYSTORE_TYPE),
        of.if_set(supported.SSL_KEYSTORE_LOCATION) or "",
        of.if_set(supported.SSL_KEYSTORE_PASSWORD),
        of.if_set(supported.SSL_KEY_PASSWORD),
        of.if_set(supported.SSL_KEYSTORE_KEY),
        of.if_set(supported.SSL_KEYSTORE_CHAIN),
    )
    if store.key is not None:
        if store.type != security.PEM:
            of.add_error(supported.SSL_KEYSTORE_KEY, _needs_pem("keystore", store.type))
        if store.location:
            of.add_error(supported.SSL_KEYSTORE_LOCATION, "is set beside ssl.keystore.key: remove one of them")
        if store.certificate_chain is None:
            of.add_error(supported.SSL_KEYSTORE_KEY, "needs ssl.keystore.certificate.chain beside it")
    elif store.certificate_chain is not None:
        of.add_error(supported.SSL_KEYSTORE_CHAIN, "needs ssl.keystore.key beside it")
    elif store.location and store.type != security.PEM and store.password is None:
        of.add_error(supported.SSL_KEYSTORE_LOCATION, "needs ssl.keystore.password beside it")
    return store if store.location or store.key is not None else None


def _needs_pem(store: str, given: str) -> str:
    return f"is PEM text, but ssl.{store}.type is {given}: write ssl.{store}.type = PEM"


def _sasl(of: Client) -> Sasl | None:
    mechanism = of.get(supported.SASL_MECHANISM)
    try:
        login = login_of(mechanism, _login_module(of.if_set(supported.SASL_JAAS_CONFIG)), of)
        # Amazon's callback handler for OAUTHBEARER: MSK's listeners have its own mechanism as well.
        return Sasl(security.AWS_MSK_IAM if isinstance(login, security.AwsIamLogin) else mechanism, login)
    except ValueError as error:
        text = str(error)
        setting: Setting[object] = supported.SASL_JAAS_CONFIG
        for name in (supported.SASL_LOGIN_CALLBACK_HANDLER, supported.OAUTH_RETRIEVER):
            if text.startswith(f"{name.name}: "):
                setting, text = name, text.removeprefix(f"{name.name}: ")
        of.add_error(setting, text)
        return None


def _login_module(config: Secret | None) -> jaas.LoginModule | None:
    if config is None:
        return None
    modules = jaas.parse(config.reveal())
    if len(modules) != 1:
        raise ValueError(f"has {len(modules)} login modules: write one")
    return modules[0]


def warnings(settings: Settings, pairs: tuple[tuple[str, str], ...]) -> Iterator[ConfigNotice]:
    """About the clients of these flows."""
    return _warnings(settings, [client(settings, role, pair, ErrorCollector()) for pair in pairs for role in ROLES])


def _warnings(settings: Settings, clients: Iterable[Client]) -> Iterator[ConfigNotice]:
    """Settings of TLS and SASL that no client uses, because of its protocol; passwords in clear text."""
    used: set[FileEntry] = set()
    unused: dict[FileEntry, str] = {}
    for of in clients:
        protocol = of.get(supported.SECURITY_PROTOCOL)
        entry = of.find(supported.SECURITY_PROTOCOL)
        for is_used, group in zip(_parts(protocol), (_OF_TLS, _OF_SASL), strict=True):
            found = filter(None, map(of.find, group))
            if is_used:
                used.update(found)
            else:
                unused |= dict.fromkeys(found, protocol if entry is not None else f"{protocol}, the default")
        if protocol == security.SASL_PLAINTEXT and of.get(supported.SASL_MECHANISM) == security.PLAIN and entry:
            yield settings.notice(entry, f"{entry.name}: the password is sent in clear text: SASL_SSL encrypts it")
        if _parts(protocol)[1]:
            yield from _ignored_handlers(of)
    for entry, protocol in unused.items():
        if entry not in used and entry.reveal().strip():
            yield settings.notice(entry, f"{entry.name} has no effect: security.protocol is {protocol}")


def _ignored_handlers(of: Client) -> Iterator[ConfigNotice]:
    """Classes that would log in differently. With OAUTHBEARER an unknown one is an error."""
    handlers = [supported.SASL_CLIENT_CALLBACK_HANDLER]
    if of.get(supported.SASL_MECHANISM) != security.OAUTHBEARER:
        handlers.append(supported.SASL_LOGIN_CALLBACK_HANDLER)
    for entry in filter(None, map(of.find, handlers)):
        name = entry.reveal().strip().rpartition(".")[2]
        if name and name not in CALLBACK_HANDLERS:
            yield of.settings.notice(entry, f"{entry.name} has no effect: {name} is a Java class that is not supported")


def of_top_level(settings: Settings) -> tuple[Security, tuple[ConfigNotice, ...]]:
    """Of settings that are not those of flows, such as a Connect worker's, with warnings. Raises `ConfigError`."""
    errors = ErrorCollector()
    of = Client(settings, ("", ""), (locations.top(),), errors)
    for setting in (supported.SECURITY_PROTOCOL, *_OF_TLS, *_OF_SASL):
        with errors:
            of.if_set(setting)
    errors.raise_collected()
    found = _security(of)
    errors.raise_collected()
    return found, tuple(_warnings(settings, [of]))
