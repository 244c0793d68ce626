"""The kinds of secured listeners: what brokers need in their settings to have one, and clients to connect to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_MODULES = "org.apache.kafka.common.security."
_PLAIN_MODULE = _MODULES + "plain.PlainLoginModule"
_SCRAM_MODULE = _MODULES + "scram.ScramLoginModule"
_OAUTH_MODULE = _MODULES + "oauthbearer.OAuthBearerLoginModule"

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256")


@dataclass(frozen=True)
class SecuredListener:
    """`mechanisms` are those of SASL, the first of which clients use unless they are asked to use another one."""

    name: str
    protocol: str
    mechanisms: tuple[str, ...] = ()
    client_certificates: bool = False

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")


KINDS = {
    "tls": SecuredListener("TLS", "SSL"),
    "mtls": SecuredListener("MTLS", "SSL", client_certificates=True),
    "scram": SecuredListener("SCRAM", "SASL_SSL", SCRAM),
    "plain": SecuredListener("PLAIN", "SASL_SSL", (PLAIN,)),
    "oauth": SecuredListener("OAUTH", "SASL_SSL", (OAUTHBEARER,)),
    "sasl-plaintext": SecuredListener("SASL_PLAINTEXT", "SASL_PLAINTEXT", (PLAIN, *SCRAM)),
}


@dataclass(frozen=True)
class TokenIssuer:
    """For OAUTHBEARER: where clients get tokens, and what brokers expect in them. `key_set` is a file."""

    url: str
    issuer: str
    audience: str
    key_set: Path


def broker_settings(
    listeners: Sequence[SecuredListener],
    *,
    key_store: Path,
    trust_store: Path,
    passwords: Mapping[str, str],
    super_users: Sequence[str],
    issuer: TokenIssuer | None,
) -> dict[str, str]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Brokers and controllers are ANONYMOUS to each other: they use listeners without a login.
        "super.users": ";".join(f"User:{user}" for user in ("ANONYMOUS", *super_users)),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust_store),
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
    }
    for listener in listeners:
        prefix = f"listener.name.{listener.name.lower()}."
        if listener.client_certificates:
            settings[prefix + "ssl.client.auth"] = "required"
        if listener.mechanisms:
            settings[prefix + "sasl.enabled.mechanisms"] = ",".join(listener.mechanisms)
        for mechanism in listener.mechanisms:
            for key, value in _mechanism_settings(mechanism, passwords, issuer).items():
                settings[f"{prefix}{mechanism.lower()}.{key}"] = value
    return settings


def _mechanism_settings(mechanism: str, passwords: Mapping[str, str], issuer: TokenIssuer | None) -> dict[str, str]:
    if mechanism == PLAIN:
        users = {f"user_{user}": password for user, password in passwords.items()}
        return {"sasl.jaas.config": jaas(_PLAIN_MODULE, users)}
    if mechanism in SCRAM:
        return {"sasl.jaas.config": jaas(_SCRAM_MODULE, {})}
    assert issuer is not None
    return {
        "sasl.jaas.config": jaas(_OAUTH_MODULE, {}),
        "sasl.server.callback.handler.class": _MODULES + "oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.key_set.as_uri(),
        "sasl.oauthbearer.expected.audience": issuer.audience,
        "sasl.oauthbearer.expected.issuer": issuer.issuer,
    }


def login_settings(mechanism: str, user: str, password: str, issuer: TokenIssuer | None) -> dict[str, str]:
    """A client's settings for SASL, apart from `security.protocol`."""
    if mechanism == OAUTHBEARER:
        assert issuer is not None
        options = {"clientId": user, "clientSecret": password, "scope": issuer.audience}
        return {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas(_OAUTH_MODULE, options),
            "sasl.login.callback.handler.class": _MODULES + "oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": issuer.url,
        }
    module = _PLAIN_MODULE if mechanism == PLAIN else _SCRAM_MODULE
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas(module, {"username": user, "password": password})}


def jaas(module: str, options: Mapping[str, str]) -> str:
    """The value of `sasl.jaas.config`."""
    return " ".join([module, "required", *(f"{key}={_quoted(value)}" for key, value in options.items())]) + ";"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
