"""How clients log in to one cluster: its users, their passwords and certificates, and the files that hold them."""

import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from heliograph.sandbox.certificates import LOOPBACK, STORE_TYPES, Authority, write_key_store, write_trust_store
from heliograph.sandbox.cluster_ports import PLAINTEXT, ClusterPorts
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.private_files import write_private
from heliograph.sandbox.scram import set_passwords
from heliograph.sandbox.secured_listeners import KINDS, OAUTHBEARER, SCRAM, TokenIssuer, broker_settings, login_settings
from heliograph.sandbox.spec import MIRROR, ClusterSpec
from heliograph.sandbox.tokens import AUDIENCE, TokenServer


def allowed_urls(*urls: str) -> str:
    """The flag without which a JVM with Kafka's OAUTHBEARER classes does not read these addresses."""
    return "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + ",".join(urls)


class ClusterSecurity:
    """Of a cluster without security as well: then `client_settings` has its addresses and nothing else.

    Each run has new passwords and certificates. `token_server` is there if a listener has OAUTHBEARER.
    """

    def __init__(self, alias: str, spec: ClusterSpec, folder: Path, authority: Authority, ports: ClusterPorts) -> None:
        self.authority = authority
        self.folder = folder / "security" / alias
        self.passwords = {user: secrets.token_urlsafe(18) for user in spec.users}
        self.store_password = secrets.token_urlsafe(18)
        self.token_server: TokenServer | None = None
        self._spec = spec
        self._ports = ports
        self._listeners = [KINDS[kind] for kind in spec.security]
        self._mechanisms = {mechanism for listener in self._listeners for mechanism in listener.mechanisms}
        self._issuer: TokenIssuer | None = None
        if self._listeners:
            self._write_broker_files()

    def _write_broker_files(self) -> None:
        # An earlier run has left certificates of another authority.
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, mode=0o700)
        write_trust_store(self.folder / "ca.pem", self.authority)
        write_key_store(self.folder / "broker.pem", self.authority.issue("broker", hosts=LOOPBACK))
        if OAUTHBEARER in self._mechanisms:
            self.token_server = TokenServer(dict(self.passwords))
            key_set = self.folder / "jwks.json"
            write_private(key_set, self.token_server.key_set().encode())
            self._issuer = TokenIssuer(self.token_server.url, self.token_server.issuer, AUDIENCE, key_set.absolute())

    def applied_to(self, spec: ClusterSpec) -> ClusterSpec:
        """The spec with what its brokers need; the spec's own settings come first."""
        if not self._listeners:
            return spec
        settings = broker_settings(
            self._listeners,
            key_store=self.folder / "broker.pem",
            trust_store=self.folder / "ca.pem",
            passwords=self.passwords,
            super_users=spec.super_users,
            issuer=self._issuer,
        )
        flags = () if self._issuer is None else (allowed_urls(self._issuer.key_set.as_uri()),)
        return replace(spec, settings={**settings, **spec.settings}, jvm_flags=(*flags, *spec.jvm_flags))

    def client_settings(
        self, user: str = MIRROR, kind: str | None = None, *, stores: str = "PEM", mechanism: str | None = None
    ) -> dict[str, str]:
        """The settings with which a Kafka client connects as a user, `bootstrap.servers` included.

        `kind` is one of the cluster's, by default the first. `stores` is the format of key stores and trust stores:
        PEM, PKCS12 or JKS. `mechanism` is for a listener that has several.
        """
        if not self._listeners:
            return {"bootstrap.servers": self._ports.bootstrap(PLAINTEXT)}
        listener = self._listeners[0 if kind is None else self._spec.security.index(kind)]
        settings = {
            "bootstrap.servers": self._ports.bootstrap(listener.name),
            "security.protocol": listener.protocol,
        }
        if listener.has_tls:
            write = partial(write_trust_store, authority=self.authority, password=self.store_password)
            settings |= self._store_settings("ssl.truststore.", self._store("ca", stores, write))
        if listener.client_certificates:
            write = partial(write_key_store, identity=self.authority.issue(user), password=self.store_password)
            settings |= self._store_settings("ssl.keystore.", self._store(user, stores, write))
            if stores != "PEM":
                settings["ssl.key.password"] = self.store_password
        if listener.mechanisms:
            chosen = mechanism or listener.mechanisms[0]
            settings |= login_settings(chosen, user, self.passwords[user], self._issuer)
        return settings

    def create_users(self, deadline: float) -> None:
        """For SCRAM, once the brokers run: passwords for it are in the cluster, not in its brokers' settings."""
        if self._mechanisms.intersection(SCRAM):
            set_passwords(self._ports.all_ports(PLAINTEXT), self.passwords, deadline)

    def change_password(self, user: str, password: str, timeout: float = 30) -> None:
        """For SCRAM and at the token endpoint. Those for PLAIN are in the brokers' settings, and stay."""
        self.passwords[user] = password
        if self.token_server is not None:
            self.token_server.clients[user] = password
        if self._mechanisms.intersection(SCRAM):
            set_passwords(self._ports.all_ports(PLAINTEXT), {user: password}, time.monotonic() + timeout)

    def close(self) -> None:
        if self.token_server is not None:
            self.token_server.close()

    def _store(self, name: str, stores: str, write: Callable[[Path], None]) -> Path:
        """Written by the first who asks for it: JKS needs a JVM."""
        suffixes = {store_type: suffix for suffix, store_type in STORE_TYPES.items()}
        if stores not in suffixes:
            raise SandboxError(f"stores are of type {', '.join(suffixes)}, not {stores}")
        path = self.folder / (name + suffixes[stores])
        if not path.exists():
            write(path)
        return path

    def _store_settings(self, prefix: str, path: Path) -> dict[str, str]:
        settings = {prefix + "type": STORE_TYPES[path.suffix], prefix + "location": str(path)}
        # Kafka refuses a password for a PEM file.
        return settings if path.suffix == ".pem" else settings | {prefix + "password": self.store_password}
