"""Secured clusters as clients see them: who gets in, who is refused, and where the secrets are."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import KafkaError
from py4j.protocol import Py4JJavaError

from heliograph.sandbox import ADMIN, MIRROR, Authority, SandboxCluster, TokenServer, write_key_store, write_trust_store
from heliograph.sandbox.secured_listeners import SCRAM, jaas
from logs import Log
from mm2 import JavaClient
from secured import ALL_KINDS, FAULTY, SecuredPair, Token, kafka_python, login, refused_logins
from waiting import until

WITH_LOGIN = [kind for kind in ALL_KINDS if kind != "tls"]


@dataclass(frozen=True)
class Topics:
    """One that user `mirror` may describe, and one that it may not."""

    allowed: str
    denied: str


@pytest.fixture(scope="module")
def topics(secured: SecuredPair) -> Topics:
    topics = Topics("sandbox-allowed", "sandbox-denied")
    for cluster in (secured.a, secured.b):
        for topic in (topics.allowed, topics.denied):
            Log(cluster.bootstrap).create(topic)
        admin: Any = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        resource = ResourcePattern(ResourceType.TOPIC, topics.allowed)
        admin.create_acls([ACL(f"User:{MIRROR}", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW, resource)])
        admin.close()
    return topics


@pytest.fixture(scope="module")
def java(secured: SecuredPair) -> Iterator[JavaClient]:
    token_server = secured.a.security.token_server
    assert token_server is not None
    flag = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token_server.url}"
    with JavaClient([flag]) as client:
        yield client


def sees(arguments: dict[str, Any], topics: Topics) -> set[str]:
    admin: Any = KafkaAdminClient(**arguments)
    seen = set(admin.list_topics()) & {topics.allowed, topics.denied}
    admin.close()
    return seen


def assert_refused(cluster: SandboxCluster, arguments: dict[str, Any]) -> None:
    """No attempt succeeds, and at least one has reached the broker."""
    (address,) = arguments["bootstrap_servers"]
    before = refused_logins(cluster, address)

    def refused() -> bool:
        with pytest.raises(KafkaError):
            KafkaAdminClient(**arguments, bootstrap_timeout_ms=1000)
        return refused_logins(cluster, address) > before

    until(refused)


@pytest.mark.parametrize("kind", WITH_LOGIN)
def test_a_user_gets_in_and_has_the_rights_of_its_acls(secured: SecuredPair, topics: Topics, kind: str) -> None:
    until(lambda: sees(login(secured.a, kind), topics) == {topics.allowed})
    assert sees(login(secured.a, kind, ADMIN), topics) == {topics.allowed, topics.denied}


def test_tls_alone_has_no_users(secured: SecuredPair, topics: Topics) -> None:
    assert sees(login(secured.a, "tls"), topics) == {topics.allowed, topics.denied}


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_has_two_mechanisms(secured: SecuredPair, topics: Topics, mechanism: str) -> None:
    until(lambda: sees(login(secured.a, "scram", mechanism=mechanism), topics) == {topics.allowed})


@pytest.mark.parametrize("kind", ["scram", "plain", "sasl-plaintext"])
def test_the_password_of_the_other_cluster_is_refused(secured: SecuredPair, kind: str) -> None:
    settings = secured.a.security.client_settings(MIRROR, kind)
    assert_refused(secured.a, kafka_python(settings, MIRROR, secured.b.security.passwords[MIRROR]))


def test_a_token_of_another_issuer_is_refused(secured: SecuredPair) -> None:
    other = TokenServer({})
    other.close()
    assert_refused(secured.a, login(secured.a, "oauth") | {"sasl_oauth_token_provider": Token(other.token(MIRROR))})


def test_a_client_without_a_certificate_or_with_that_of_another_authority_is_refused(
    secured: SecuredPair, tmp_path: Path
) -> None:
    arguments = login(secured.a, "mtls")
    assert_refused(
        secured.a, {key: value for key, value in arguments.items() if key not in ("ssl_certfile", "ssl_keyfile")}
    )
    write_key_store(tmp_path / "other.pem", Authority().issue(MIRROR))
    other = str(tmp_path / "other.pem")
    assert_refused(secured.a, arguments | {"ssl_certfile": other, "ssl_keyfile": other})


def test_a_client_that_trusts_another_authority_does_not_connect(secured: SecuredPair, tmp_path: Path) -> None:
    write_trust_store(tmp_path / "other.pem", Authority())
    assert_refused(secured.a, login(secured.a, "tls") | {"ssl_cafile": str(tmp_path / "other.pem")})


@pytest.mark.parametrize("listener", FAULTY)
def test_a_client_refuses_the_faulty_certificates_of_the_tests_listeners(secured: SecuredPair, listener: str) -> None:
    assert_refused(secured.b, login(secured.b, "tls") | {"bootstrap_servers": [secured.b.bootstrap_of(listener)]})


def test_a_changed_password_counts_at_once(secured: SecuredPair, topics: Topics) -> None:
    security, kinds = secured.a.security, ("scram", "oauth")
    before = login(secured.a, "scram", "rotated")
    security.change_password("rotated", 'ne"w\\ password')
    for kind in kinds:
        assert sees(login(secured.a, kind, "rotated"), topics) == set()
    assert_refused(secured.a, before)


@pytest.mark.parametrize("stores", ["PEM", "PKCS12", "JKS"])
def test_java_clients_take_the_settings_with_stores_of_each_type(
    secured: SecuredPair, topics: Topics, java: JavaClient, stores: str
) -> None:
    settings = secured.a.security.client_settings(MIRROR, "mtls", stores=stores)
    assert settings["ssl.keystore.type"] == settings["ssl.truststore.type"] == stores
    until(lambda: java.topics(settings) == {topics.allowed})


@pytest.mark.parametrize("kind", ["scram", "plain", "oauth", "sasl-plaintext"])
def test_java_clients_take_the_settings_of_each_login(
    secured: SecuredPair, topics: Topics, java: JavaClient, kind: str
) -> None:
    until(lambda: java.topics(secured.a.security.client_settings(MIRROR, kind)) == {topics.allowed})


def test_java_clients_are_refused_with_a_wrong_password(secured: SecuredPair, java: JavaClient) -> None:
    settings = secured.a.security.client_settings(MIRROR, "plain")
    wrong = settings["sasl.jaas.config"].replace('password="', 'password="x')
    with pytest.raises(Py4JJavaError, match="SaslAuthenticationException"):
        java.topics(settings | {"sasl.jaas.config": wrong})


def test_secrets_are_in_files_of_the_owner_and_not_on_command_lines(secured: SecuredPair) -> None:
    for cluster in (secured.a, secured.b):
        passwords = set(cluster.security.passwords.values())
        for pid in cluster.pids().values():
            command = " ".join(psutil.Process(pid).cmdline())
            assert not [password for password in passwords if password in command]
        files = [cluster.folder(1) / "server.properties", *cluster.security.folder.iterdir()]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_jaas_line_quotes_what_it_must() -> None:
    assert jaas("Module", {"password": 'a"b\\c'}) == 'Module required password="a\\"b\\\\c";'
