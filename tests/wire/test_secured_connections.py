"""Connections to secured listeners of real brokers: who gets in, and what is said about who does not."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.model.backoff import Backoff
from heliograph.model.flow import Cluster
from heliograph.model.secret import Secret
from heliograph.model.security import (
    PLAIN,
    SCRAM_SHA_512,
    UNSECURED,
    KeyStore,
    OAuthLogin,
    PasswordLogin,
    Sasl,
    Security,
    Tls,
)
from heliograph.sandbox import SandboxCluster
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.security.failures import SecurityFailure
from secured import ALL_KINDS, SHORT_SESSION, SecuredPair, cluster_of, failure, reach, stays_connected
from waiting import PATIENCE


def _at(cluster: SandboxCluster, kind: str, **more: str) -> Cluster:
    return cluster_of(cluster.security.client_settings("mirror", kind, **more))


def _with(cluster: Cluster, **changes: object) -> Cluster:
    return replace(cluster, security=replace(cluster.security, **changes))  # type: ignore[arg-type]


def _tls(cluster: Cluster, **changes: object) -> Cluster:
    tls = cluster.security.tls
    assert tls is not None
    return _with(cluster, tls=replace(tls, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_each_kind_of_listener_is_reached(secured: SecuredPair, kind: str) -> None:
    reach(_at(secured.a, kind))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_each_mechanism_works_without_tls(secured: SecuredPair, mechanism: str) -> None:
    reach(_at(secured.a, "sasl-plaintext", mechanism=mechanism))


@pytest.mark.parametrize("stores", ["JKS", "PKCS12"])
def test_a_client_certificate_may_be_in_a_store_of_java(secured: SecuredPair, stores: str) -> None:
    reach(_at(secured.a, "mtls", stores=stores))


def test_a_wrong_password_and_an_unknown_user(secured: SecuredPair) -> None:
    scram, plain = _at(secured.a, "scram"), _at(secured.a, "plain")
    wrong = Secret("not-the-password")
    assert failure(_with(scram, sasl=Sasl(SCRAM_SHA_512, PasswordLogin("mirror", wrong)))) == (
        "sasl.jaas.config: the broker refuses user mirror with SCRAM-SHA-512 (Authentication failed during "
        "authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512): check user and password"
    )
    assert failure(_with(plain, sasl=Sasl(PLAIN, PasswordLogin("no,b=dy", wrong)))) == (
        "sasl.jaas.config: the broker refuses user no,b=dy with PLAIN (Authentication failed: Invalid username or "
        "password): check user and password"
    )


def test_a_mechanism_that_the_broker_does_not_have(secured: SecuredPair) -> None:
    login = PasswordLogin("mirror", Secret("x"))
    assert failure(_with(_at(secured.a, "scram"), sasl=Sasl(PLAIN, login))) == (
        "sasl.mechanism: the broker does not support PLAIN, but: SCRAM-SHA-512, SCRAM-SHA-256"
    )


def test_a_token_that_the_broker_does_not_accept(secured: SecuredPair) -> None:
    login = OAuthLogin(token=Secret("not.a.token"))
    assert failure(_with(_at(secured.a, "oauth"), sasl=Sasl("OAUTHBEARER", login))) == (
        'sasl.jaas.config: the broker refuses the token with OAUTHBEARER ({"status":"invalid_token"}): check issuer '
        "and audience"
    )


def test_the_wrong_protocol_for_a_listener(secured: SecuredPair) -> None:
    tls, scram, sasl = _at(secured.a, "tls"), _at(secured.a, "scram"), _at(secured.a, "sasl-plaintext")
    plaintext = tuple((host, int(port)) for host, port in [secured.a.bootstrap.split(":")])
    assert "the listener speaks TLS: set security.protocol to SSL" in failure(replace(tls, security=UNSECURED))
    assert "the listener may require SASL" in failure(_with(scram, sasl=None))
    assert "the listener may require SASL" in failure(replace(sasl, security=UNSECURED))
    assert "the listener does not use SASL" in failure(_with(tls, sasl=scram.security.sasl))
    assert "the listener does not use SASL" in failure(replace(sasl, bootstrap_servers=plaintext))
    assert "check that the port is one for TLS" in failure(replace(tls, bootstrap_servers=plaintext))


@pytest.mark.parametrize(
    ("listener", "text"),
    [
        ("EXPIRED", "the broker's certificate has expired, or that of its issuer: renew it"),
        ("NOT_YET_VALID", "the broker's certificate is not valid yet: check the clocks of both machines"),
        ("OTHER_HOST", "connect by a name that is in the certificate"),
        ("OTHER_AUTHORITY", "from an issuer that is not in ssl.truststore: add the issuer's certificate there"),
    ],
)
def test_a_certificate_that_is_not_to_be_trusted(secured: SecuredPair, listener: str, text: str) -> None:
    settings = secured.b.security.client_settings("mirror", "tls")
    cluster = cluster_of(settings | {"bootstrap.servers": secured.b.bootstrap_of(listener)})
    assert text in failure(cluster)
    if listener == "OTHER_HOST":
        reach(_tls(cluster, verify_host=False))


def test_what_is_wrong_with_our_own_side_of_tls(secured: SecuredPair, tmp_path: Path) -> None:
    tls, mtls = _at(secured.a, "tls"), _at(secured.a, "mtls")
    assert failure(_tls(mtls, key=None)) == "the broker requires a client certificate: set ssl.keystore.location"
    assert "from an issuer that is not in ssl.truststore" in failure(replace(tls, security=Security(Tls())))
    missing = KeyStore("PEM", str(tmp_path / "missing.pem"))
    assert "ssl.keystore.location" in failure(_tls(mtls, key=missing))
    only_rsa = ("TLS_RSA_WITH_AES_128_CBC_SHA",)
    assert "no cipher suite in common" in failure(_tls(tls, cipher_suites=only_rsa))
    reach(_tls(tls, cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)))
    reach(_tls(tls, protocols=("TLSv1.2",)))
    reach(_tls(tls, protocols=("TLSv1.3",)))


def test_refused_logins_are_not_repeated_at_once(secured: SecuredPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second attempt fails with the first one's reason, and the broker does not see it."""
    monkeypatch.setattr("heliograph.wire.reconnecting._LOGIN_BACKOFF", Backoff(PATIENCE, PATIENCE))
    cluster = _with(_at(secured.b, "plain"), sasl=Sasl(PLAIN, PasswordLogin("mirror", Secret("wrong"))))

    async def main() -> None:
        client = ClusterClient(cluster)
        with pytest.raises(SecurityFailure) as first:
            await client.connect()
        attempts = client._attempts[cluster.bootstrap_servers[0]]
        assert attempts.failures == 1
        with pytest.raises(SecurityFailure) as second:
            await client.connect()
        assert str(first.value) == str(second.value)
        assert attempts.failures == 1

    asyncio.run(main())


def test_a_login_is_repeated_before_the_broker_ends_the_session(secured: SecuredPair) -> None:
    """A broker answers no request on a connection whose session has ended, but closes it."""
    password, token = _at(secured.a, "sasl-plaintext", mechanism="SCRAM-SHA-256"), _at(secured.a, "oauth")

    async def main() -> None:
        await asyncio.gather(stays_connected(password, SHORT_SESSION), stays_connected(token, SHORT_SESSION))

    asyncio.run(main())
