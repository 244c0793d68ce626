"""What `tls` and `authentication` of a Strimzi cluster mean as settings of Kafka's clients.

Strimzi keeps passwords, keys and certificates in Kubernetes secrets, which are not in the file. Each becomes a
reference to an environment variable, with a note; a setting under `config` wins over it.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from heliograph.config.declare.secrets import Value, hide
from heliograph.config.messages import ConfigError, ConfigNotice, position
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.tree import Table
from heliograph.model.secret import Secret

_LOGIN = "org.apache.kafka.common.security"
_SASL = {
    "plain": ("PLAIN", f"{_LOGIN}.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", f"{_LOGIN}.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", f"{_LOGIN}.scram.ScramLoginModule"),
}
_OAUTH = {
    "tokenEndpointUri": "sasl.oauthbearer.token.endpoint.url",
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "scope": "sasl.oauthbearer.scope",
}
# The types of authentication, and the fields that each one has besides `type`.
_TYPES = {
    "tls": ("certificateAndKey",),
    **dict.fromkeys(_SASL, ("username", "passwordSecret")),
    "oauth": ("clientSecret", *_OAUTH),
    "custom": ("sasl", "config"),
}


@dataclass(slots=True)
class _Settings:
    """The settings collected so far. `own` are those of the cluster's `config`."""

    file: str
    alias: str
    own: Collection[str]
    given: dict[str, FileEntry] = field(default_factory=dict)
    notes: list[ConfigNotice] = field(default_factory=list)

    def put(self, name: str, value: Value, line: int, written: str) -> None:
        self.given[name] = FileEntry(line, name, hide(name, value), written=written)

    def secret(self, name: str, what: str, line: int, written: str, form: str = "{}") -> None:
        """A setting whose value is in a Kubernetes secret: a reference to the environment, unless `config` has it."""
        if name in self.own:
            return
        variable = re.sub(r"[^A-Z0-9]", "_", f"{self.alias}_{what}".upper())
        self.put(name, form.format("${env:" + variable + "}"), line, written)
        text = (
            f"{written}: the content of a secret is not in this file: set the environment variable {variable}, or "
            f"write '{name}' under config, for example as ${{file:/path/to/file.properties:key}}"
        )
        self.notes.append(ConfigNotice(line, written, text, self.file))


def settings(
    file: str, alias: str, cluster: Table, path: str, own: Collection[str]
) -> tuple[dict[str, FileEntry], list[ConfigNotice]]:
    read = _Settings(file, alias, own)
    tls = cluster.get("tls")
    if tls is not None:
        if isinstance(tls.value, Table) and (trusted := tls.value.get("trustedCertificates")) is not None:
            read.put("ssl.truststore.type", "PEM", trusted.line, f"{path}tls.trustedCertificates")
            read.secret("ssl.truststore.certificates", "CA", trusted.line, f"{path}tls.trustedCertificates")
        read.put("security.protocol", "SSL", tls.line, f"{path}tls")
    authentication = cluster.get("authentication")
    if authentication is not None and isinstance(authentication.value, Table):
        _authentication(read, authentication.value, f"{path}authentication.", tls is not None)
    return read.given, read.notes


def _authentication(read: _Settings, table: Table, path: str, tls: bool) -> None:
    kind = table.get("type")
    name = str(kind.value) if kind else ""
    line = kind.line if kind else table.line
    if name not in _TYPES:
        raise ConfigError(f"{position(read.file, line)}: {path}type: '{name}' is not one of {', '.join(_TYPES)}")
    protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
    if name == "tls":
        read.put("ssl.keystore.type", "PEM", line, f"{path}type")
        read.secret("ssl.keystore.certificate.chain", "CERTIFICATE", line, f"{path}certificateAndKey.certificate")
        read.secret("ssl.keystore.key", "KEY", line, f"{path}certificateAndKey.key")
    elif name == "custom":
        if table.text("sasl") == "true":
            read.put("security.protocol", protocol, line, f"{path}sasl")
        config = table.get("config")
        for option in config.value.fields if config and isinstance(config.value, Table) else ():
            if isinstance(option.value, str | Secret):
                read.put(option.name, option.value, option.line, f"{path}config.{option.name}")
    else:
        mechanism, module = _SASL.get(name, ("OAUTHBEARER", ""))
        read.put("security.protocol", protocol, line, f"{path}type")
        read.put("sasl.mechanism", mechanism, line, f"{path}type")
        if module:
            login = f'{module} required username="{table.text("username")}" password="{{}}";'
            read.secret("sasl.jaas.config", "PASSWORD", line, f"{path}passwordSecret", login)
        else:
            _oauth(read, table, path)
    for ignored in table.fields:
        if ignored.name not in ("type", *_TYPES[name]):
            text = f"{path}{ignored.name} has no effect: write a setting under config instead"
            read.notes.append(ConfigNotice(ignored.line, f"{path}{ignored.name}", text, read.file))


def _oauth(read: _Settings, table: Table, path: str) -> None:
    for name, setting in _OAUTH.items():
        if (given := table.get(name)) is not None:
            read.put(setting, str(given.value), given.line, f"{path}{name}")
    if (secret := table.get("clientSecret")) is not None:
        name = "sasl.oauthbearer.client.credentials.client.secret"
        read.secret(name, "CLIENT_SECRET", secret.line, f"{path}clientSecret")
