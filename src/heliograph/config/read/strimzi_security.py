"""What `tls` and `authentication` of a Strimzi cluster mean as settings of Kafka's clients.

Strimzi keeps passwords, keys and certificates in Kubernetes secrets, which are not in the file. If their mount is known
(HELIOGRAPH_SECRETS_DIR), each becomes a reference to its file; else to an environment variable, with a note. A setting
under `config` wins over both.
"""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from heliograph.config.declare.secrets import Value, hide, reveal
from heliograph.config.messages import ConfigError, ConfigNotice, Consequence, position
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.providers import SECRETS_DIR_VARIABLE, secrets_directory
from heliograph.config.read.tree import Field, Table
from heliograph.model.secret import Secret

_LOGIN = "org.apache.kafka.common.security"
_SASL = {
    "plain": ("PLAIN", f"{_LOGIN}.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", f"{_LOGIN}.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", f"{_LOGIN}.scram.ScramLoginModule"),
}
# Fields of `oauth` and the options of Strimzi's login module that they mean.
_OAUTH = {
    "tokenEndpointUri": "oauth.token.endpoint.uri",
    "clientId": "oauth.client.id",
    "scope": "oauth.scope",
    "audience": "oauth.audience",
    "accessTokenLocation": "oauth.access.token.location",
    "connectTimeoutSeconds": "oauth.connect.timeout.seconds",
    "readTimeoutSeconds": "oauth.read.timeout.seconds",
}
_OAUTH_SECRETS = {
    "clientSecret": ("oauth.client.secret", "CLIENT_SECRET"),
    "accessToken": ("oauth.access.token", "ACCESS_TOKEN"),
    "refreshToken": ("oauth.refresh.token", "REFRESH_TOKEN"),
}
_OAUTH_TLS = ("tlsTrustedCertificates", "disableTlsHostnameVerification", "saslExtensions")
# The types of authentication, and the fields that each one has besides `type`.
_TYPES = {
    "tls": ("certificateAndKey",),
    **dict.fromkeys(_SASL, ("username", "passwordSecret")),
    "oauth": (*_OAUTH_SECRETS, *_OAUTH, *_OAUTH_TLS),
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

    def note(self, line: int, written: str, text: str) -> None:
        self.notes.append(ConfigNotice(line, written, f"{written}{text}", self.file, Consequence.ACTION))

    def reference(self, name: str, what: str, sources: list[tuple[str, str]], line: int, written: str) -> str:
        """To a secret that the setting `name` needs. `sources` are its name and key, several for certificates."""
        if sources and secrets_directory():
            return "\n".join(f"${{strimzisecrets:{secret}:{key}}}" for secret, key in sources)
        variable = re.sub(r"[^A-Z0-9]", "_", f"{self.alias}_{what}".upper())
        if name not in self.own and variable not in os.environ:
            self.note(
                line,
                written,
                f": the content of a secret is not in this file: set {SECRETS_DIR_VARIABLE} to the directory where "
                f"secrets are mounted, or the environment variable {variable}, or write '{name}' under config, for "
                "example as ${file:/path/to/file.properties:key}",
            )
        return "${env:" + variable + "}"

    def secret(self, name: str, what: str, sources: list[tuple[str, str]], line: int, written: str) -> None:
        """A setting whose value is in a Kubernetes secret, unless `config` has it."""
        if name not in self.own:
            self.put(name, self.reference(name, what, sources, line, written), line, written)


def settings(
    file: str, alias: str, cluster: Table, path: str, own: Collection[str]
) -> tuple[dict[str, FileEntry], list[ConfigNotice]]:
    read = _Settings(file, alias, own)
    tls = cluster.get("tls")
    if tls is not None:
        if isinstance(tls.value, Table) and (trusted := tls.value.get("trustedCertificates")) is not None:
            written = f"{path}tls.trustedCertificates"
            read.put("ssl.truststore.type", "PEM", trusted.line, written)
            certificates = list(_certificates(trusted))
            read.secret("ssl.truststore.certificates", "CA", certificates, trusted.line, written)
        read.put("security.protocol", "SSL", tls.line, f"{path}tls")
    authentication = cluster.get("authentication")
    if authentication is not None and isinstance(authentication.value, Table):
        _authentication(read, authentication.value, f"{path}authentication.", tls is not None)
    return read.given, read.notes


def _certificates(trusted: Field) -> Iterator[tuple[str, str]]:
    """The name of each secret, and the key in it, which may be a pattern."""
    for item in trusted.value if isinstance(trusted.value, tuple) else ():
        if isinstance(item, Table) and _text(item, "secretName"):
            yield _text(item, "secretName"), _text(item, "certificate") or _text(item, "pattern") or "*.crt"


def _source(table: Table, name: str, key: str) -> list[tuple[str, str]]:
    """A field such as `passwordSecret: {secretName: ..., password: ...}`, where `key` names the key's field."""
    secret = table.get(name)
    if secret is None or not isinstance(secret.value, Table):
        return []
    parts = (_text(secret.value, "secretName"), _text(secret.value, key))
    return [parts] if all(parts) else []


def _text(table: Table, name: str) -> str:
    """Also of a field whose name looks like a secret's, as here it is the name of one."""
    found = table.get(name)
    return reveal(found.value) if found is not None and isinstance(found.value, str | Secret) else ""


def _authentication(read: _Settings, table: Table, path: str, tls: bool) -> None:
    kind = table.get("type")
    name = str(kind.value) if kind else ""
    line = kind.line if kind else table.line
    if name not in _TYPES:
        raise ConfigError(f"{position(read.file, line)}: {path}type: '{name}' is not one of {', '.join(_TYPES)}")
    protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
    if name == "tls":
        read.put("ssl.keystore.type", "PEM", line, f"{path}type")
        for setting, what, key in (
            ("ssl.keystore.certificate.chain", "CERTIFICATE", "certificate"),
            ("ssl.keystore.key", "KEY", "key"),
        ):
            written = f"{path}certificateAndKey.{key}"
            read.secret(setting, what, _source(table, "certificateAndKey", key), line, written)
    elif name == "custom":
        if table.text("sasl") == "true":
            read.put("security.protocol", protocol, line, f"{path}sasl")
        config = table.get("config")
        for option in config.value.fields if config and isinstance(config.value, Table) else ():
            if isinstance(option.value, str | Secret):
                read.put(option.name, option.value, option.line, f"{path}config.{option.name}")
    else:
        mechanism, module = _SASL.get(name, ("OAUTHBEARER", f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule"))
        read.put("security.protocol", protocol, line, f"{path}type")
        read.put("sasl.mechanism", mechanism, line, f"{path}type")
        options = dict(_oauth(read, table, path) if name == "oauth" else _password(read, table, path, line))
        login = " ".join(f'{option}="{text}"' for option, text in options.items())
        if "sasl.jaas.config" not in read.own:
            written = f"{path}type" if name == "oauth" else f"{path}passwordSecret"
            read.put("sasl.jaas.config", f"{module} required {login};", line, written)
    for ignored in table.fields:
        if ignored.name not in ("type", *_TYPES[name]):
            read.note(ignored.line, f"{path}{ignored.name}", " has no effect: write a setting under config instead")


def _password(read: _Settings, table: Table, path: str, line: int) -> Iterator[tuple[str, str]]:
    yield "username", table.text("username")
    source = _source(table, "passwordSecret", "password")
    yield "password", read.reference("sasl.jaas.config", "PASSWORD", source, line, f"{path}passwordSecret")


def _oauth(read: _Settings, table: Table, path: str) -> Iterator[tuple[str, str]]:
    for name, option in _OAUTH.items():
        if text := _text(table, name):
            yield option, text
    for name, (option, what) in _OAUTH_SECRETS.items():
        if (found := table.get(name)) is not None:
            source = _source(table, name, "key")
            yield option, read.reference("sasl.jaas.config", what, source, found.line, f"{path}{name}")
    if _text(table, "disableTlsHostnameVerification").lower() == "true":
        yield "oauth.ssl.endpoint.identification.algorithm", ""
    extensions = table.get("saslExtensions")
    for extension in extensions.value.fields if extensions and isinstance(extensions.value, Table) else ():
        yield f"oauth.sasl.extension.{extension.name}", str(extension.value)
    if (trusted := table.get("tlsTrustedCertificates")) is not None:
        yield from _endpoint_certificate(read, trusted, f"{path}tlsTrustedCertificates")


def _endpoint_certificate(read: _Settings, trusted: Field, written: str) -> Iterator[tuple[str, str]]:
    """A login module's option is one line, so it names the file."""
    files = [(secret, key) for secret, key in _certificates(trusted) if "*" not in key]
    if not secrets_directory():
        read.note(trusted.line, written, f" has no effect: set {SECRETS_DIR_VARIABLE} to where secrets are mounted")
    elif len(files) != 1:
        read.note(trusted.line, written, " has no effect: name one secret with one certificate, without a pattern")
    else:
        yield "oauth.ssl.truststore.location", f"{secrets_directory()}/{files[0][0]}/{files[0][1]}"
        yield "oauth.ssl.truststore.type", "PEM"
