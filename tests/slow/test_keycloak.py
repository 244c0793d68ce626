"""Logins with OAUTHBEARER at a real broker, with tokens of a real Keycloak. `make test-keycloak` runs this file."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from heliograph.model.flow import Cluster
from heliograph.model.security import OAUTHBEARER, OAuthLogin
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.sandbox.secured_listeners import jaas
from heliograph.wire.security.oauth_tokens import access_token
from secured import cluster_of, failure, reach, stays_connected
from slow.keycloak import AUDIENCE, Client, Keycloak, running_keycloak

SHORT = 10  # seconds
CLIENTS = {
    "mirror": Client("the secret/of+mirror"),
    "brief": Client("the secret of brief", lifetime=SHORT),
    "stranger": Client("the secret of stranger", audience="something else"),
}
_MODULES = "org.apache.kafka.common.security.oauthbearer."


@dataclass(frozen=True)
class OAuthCluster:
    """A cluster that accepts the tokens of a Keycloak."""

    keycloak: Keycloak
    bootstrap: str

    def reached_by(self, client: str, secret: str | None = None) -> Cluster:
        options = {"clientId": client, "clientSecret": CLIENTS[client].secret if secret is None else secret}
        return cluster_of(
            {
                "bootstrap.servers": self.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": OAUTHBEARER,
                "sasl.jaas.config": jaas(_MODULES + "OAuthBearerLoginModule", options),
                "sasl.login.callback.handler.class": _MODULES + "OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": self.keycloak.token_endpoint,
                # Keycloak decodes id and secret, as RFC 6749 has it: a plus sign would be a space.
                "sasl.oauthbearer.header.urlencode": "true",
            }
        )


@pytest.fixture(scope="module")
def oauth(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OAuthCluster]:
    with running_keycloak(tmp_path_factory.mktemp("keycloak"), CLIENTS) as keycloak:
        mechanism = "listener.name.tokens.oauthbearer."
        spec = ClusterSpec(
            listeners={"TOKENS": "SASL_PLAINTEXT"},
            settings={
                "listener.name.tokens.sasl.enabled.mechanisms": OAUTHBEARER,
                mechanism + "sasl.jaas.config": jaas(_MODULES + "OAuthBearerLoginModule", {}),
                mechanism + "sasl.server.callback.handler.class": _MODULES + "OAuthBearerValidatorCallbackHandler",
                mechanism + "sasl.oauthbearer.jwks.endpoint.url": keycloak.key_set,
                mechanism + "sasl.oauthbearer.expected.audience": AUDIENCE,
                mechanism + "sasl.oauthbearer.expected.issuer": keycloak.issuer,
                # Then a session ends with its token, at the latest.
                mechanism + "connections.max.reauth.ms": "3600000",
            },
            jvm_flags=(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keycloak.key_set}",),
            fast_start=True,
        )
        (cluster,) = sandbox.start({"TOKENS": spec})
        yield OAuthCluster(keycloak, cluster.bootstrap_of("TOKENS"))


def test_a_client_gets_a_token_and_logs_in_with_it(oauth: OAuthCluster) -> None:
    reach(oauth.reached_by("mirror"))


def test_a_connection_outlives_its_tokens(oauth: OAuthCluster) -> None:
    cluster = oauth.reached_by("brief")
    assert cluster.security.sasl is not None
    login = cluster.security.sasl.login
    assert isinstance(login, OAuthLogin)
    first = access_token(login)
    asyncio.run(stays_connected(cluster, 2 * SHORT))
    assert access_token(login) != first


def test_a_wrong_secret(oauth: OAuthCluster) -> None:
    message = failure(oauth.reached_by("mirror", "not the secret"))
    assert message == (
        f"sasl.oauthbearer.token.endpoint.url: {oauth.keycloak.token_endpoint} answers 401 (unauthorized_client "
        "Invalid client or Invalid client credentials): check the client's id and secret, the scope and the path"
    )


def test_a_token_for_another_audience(oauth: OAuthCluster) -> None:
    message = failure(oauth.reached_by("stranger"))
    assert message == (
        'sasl.jaas.config: the broker refuses client stranger with OAUTHBEARER ({"status":"invalid_token"}): check '
        "issuer and audience"
    )
