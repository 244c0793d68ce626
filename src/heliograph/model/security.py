"""How clients reach a secured cluster, as plain values: TLS, and how to log in with SASL.

The names are those of Kafka's client settings. Files are named, not read: each machine reads its own, and reads them
again for new connections, so that renewed files take effect without a restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from heliograph.model.secret import Secret

JKS, PKCS12, PEM = "JKS", "PKCS12", "PEM"
PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PLAIN, SCRAM_SHA_256, SCRAM_SHA_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTHBEARER, GSSAPI, AWS_MSK_IAM = "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM)


@dataclass(frozen=True, slots=True)
class TrustStore:
    """`ssl.truststore.*`: the certificates to trust. `certificates` is PEM text; without it and without a file, those
    of the operating system are trusted."""

    type: str = JKS
    location: str = ""
    password: Secret | None = None
    certificates: Secret | None = None


@dataclass(frozen=True, slots=True)
class KeyStore:
    """`ssl.keystore.*` and `ssl.key.password`: the client's own key and certificates, in a file or as PEM texts."""

    type: str = JKS
    location: str = ""
    password: Secret | None = None
    key_password: Secret | None = None
    key: Secret | None = None
    certificate_chain: Secret | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """`key` is None if the client has no certificate of its own. `cipher_suites` are Java's names; none: the usual."""

    trust: TrustStore = TrustStore()
    key: KeyStore | None = None
    verify_host: bool = True
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """PLAIN and SCRAM. `is_token`: name and password are those of a delegation token (SCRAM only)."""

    username: str
    password: Secret
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class OAuthLogin:
    """OAUTHBEARER. Either a client's id and secret, for which `token_endpoint` returns tokens; or a `token` itself; or
    `token_location`, a file that has it. `tls` is for the endpoint. `extensions` are sent to the broker."""

    token_endpoint: str = ""
    client_id: str = ""
    client_secret: Secret | None = None
    scope: str = ""
    audience: str = ""
    token: Secret | None = None
    token_location: str = ""
    url_encode_header: bool = False
    tls: Tls = Tls()
    extensions: tuple[tuple[str, str], ...] = ()
    connect_timeout: float = 10.0
    read_timeout: float = 10.0
    refresh_at: float = 0.8  # fraction of a token's lifetime after which another one is fetched


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """GSSAPI. With `keytab` and `principal`, or with the tickets that the process finds: those of `principal`, or, if
    that is empty too, of anybody."""

    service_name: str = "kafka"
    principal: str = ""
    keytab: str = ""


@dataclass(frozen=True, slots=True)
class AwsIamLogin:
    """Amazon MSK: a signed token instead of a password. Empty fields: as AWS' own tools find them. `region` is where
    the role is assumed; the cluster's own region is in the names of its brokers."""

    region: str = ""
    profile: str = ""
    role_arn: str = ""
    session_name: str = ""


Login: TypeAlias = PasswordLogin | OAuthLogin | KerberosLogin | AwsIamLogin


@dataclass(frozen=True, slots=True)
class Sasl:
    mechanism: str
    login: Login


@dataclass(frozen=True, slots=True)
class Security:
    """`tls` is None without TLS, `sasl` is None without SASL."""

    tls: Tls | None = None
    sasl: Sasl | None = None

    @property
    def protocol(self) -> str:
        """The value of `security.protocol`."""
        if self.sasl is None:
            return PLAINTEXT if self.tls is None else SSL
        return SASL_PLAINTEXT if self.tls is None else SASL_SSL


UNSECURED = Security()
