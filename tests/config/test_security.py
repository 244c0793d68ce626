"""From settings to the security of each client: TLS, logins, roles, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.client import MirrorClient
from heliograph.config import ConfigError
from heliograph.config.resolve.client_config import client_security
from heliograph.config.resolve.posted import connector, flow_of
from heliograph.model.flow import Cluster
from heliograph.model.secret import Secret
from heliograph.model.security import (
    UNSECURED,
    AwsIamLogin,
    KerberosLogin,
    KeyStore,
    Login,
    OAuthLogin,
    PasswordLogin,
    Sasl,
    Security,
    Tls,
    TrustStore,
)

from .files import flow, warnings

KAFKA = "org.apache.kafka.common.security"
PLAIN = f'{KAFKA}.plain.PlainLoginModule required username="me" password="hush";'
SCRAM = f'{KAFKA}.scram.ScramLoginModule required username="me" password="hush";'
OAUTH = f"{KAFKA}.oauthbearer.OAuthBearerLoginModule required"
ENDPOINT = "A.sasl.oauthbearer.token.endpoint.url = https://login/token\n"
STRIMZI = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"


def sasl(mechanism: str, jaas: str, protocol: str = "SASL_SSL", cluster: str = "A.") -> str:
    login = f"{cluster}sasl.jaas.config = {jaas}\n" if jaas else ""
    return f"{cluster}security.protocol = {protocol}\n{cluster}sasl.mechanism = {mechanism}\n{login}"


def login(added: str) -> Login:
    found = flow(added).source.security.sasl
    assert found is not None
    return found.login


def errors(added: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        flow(added)
    assert "hush" not in str(raised.value)
    return list(raised.value.errors)


def test_without_a_protocol_nothing_is_secured() -> None:
    read = flow()
    assert (read.source.security, read.target.security, read.reader, read.writer) == (UNSECURED, UNSECURED, None, None)


def test_tls_is_read_as_kafka_names_it() -> None:
    read = flow(
        "A.security.protocol = ssl\nA.ssl.truststore.location = /a/trust.jks\nA.ssl.truststore.password = hush\n"
        "A.ssl.keystore.location = /a/key.p12\nA.ssl.keystore.password = hush2\nA.ssl.keystore.type = PKCS12\n"
        "A.ssl.key.password = hush3\nA.ssl.endpoint.identification.algorithm =\nA.ssl.enabled.protocols = TLSv1.2\n"
        "A.ssl.cipher.suites = X, Y\n"
    )
    assert read.source.security == Security(
        Tls(
            TrustStore("JKS", "/a/trust.jks", Secret("hush")),
            KeyStore("PKCS12", "/a/key.p12", Secret("hush2"), Secret("hush3")),
            False,
            ("TLSv1.2",),
            ("X", "Y"),
        )
    )
    assert read.target.security == UNSECURED
    assert "hush" not in repr(read)


def test_tls_without_any_store_trusts_what_the_system_trusts() -> None:
    assert flow("security.protocol = SSL\n").target.security == Security(Tls())


def test_certificates_and_keys_may_be_in_the_file() -> None:
    read = flow(
        "B.security.protocol = SSL\nB.ssl.truststore.type = PEM\nB.ssl.truststore.certificates = CA\n"
        "B.ssl.keystore.type = PEM\nB.ssl.keystore.key = KEY\nB.ssl.keystore.certificate.chain = CHAIN\n"
    )
    assert read.target.security.tls == Tls(
        TrustStore("PEM", certificates=Secret("CA")),
        KeyStore("PEM", key=Secret("KEY"), certificate_chain=Secret("CHAIN")),
    )


def test_ssl_protocol_is_the_highest_version() -> None:
    def versions(added: str) -> tuple[str, ...]:
        tls = flow(f"security.protocol = SSL\n{added}").source.security.tls
        assert tls is not None
        return tls.protocols

    assert versions("ssl.protocol = TLSv1.2\n") == ("TLSv1.2",)
    assert versions("ssl.protocol = TLS\n") == ("TLSv1.2", "TLSv1.3")
    assert versions("ssl.enabled.protocols = TLSv1.3\n") == ("TLSv1.3",)
    assert errors("security.protocol = SSL\nssl.enabled.protocols = TLSv1.3\nssl.protocol = TLSv1.2\n") == [
        "mm2.properties:6: ssl.enabled.protocols: allows only TLSv1.3, which is above ssl.protocol: change one of them"
    ]


@pytest.mark.parametrize(
    ("mechanism", "jaas", "expected"),
    [
        ("PLAIN", PLAIN, PasswordLogin("me", Secret("hush"))),
        ("SCRAM-SHA-512", SCRAM, PasswordLogin("me", Secret("hush"))),
        ("SCRAM-SHA-256", PLAIN, PasswordLogin("me", Secret("hush"))),
        ("SCRAM-SHA-256", SCRAM.replace(";", ' tokenauth="true";'), PasswordLogin("me", Secret("hush"), True)),
        ("PLAIN", PLAIN.replace("org.", "kafkashaded.org."), PasswordLogin("me", Secret("hush"))),
        (
            "GSSAPI",
            'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="me@X" '
            'serviceName="kfk";',
            KerberosLogin("kfk", "me@X", "/k"),
        ),
        ("GSSAPI", "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;", KerberosLogin()),
        (
            "GSSAPI",
            'com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true principal="me@X";',
            KerberosLogin(principal="me@X"),
        ),
        ("AWS_MSK_IAM", "software.amazon.msk.auth.iam.IAMLoginModule required;", AwsIamLogin()),
        (
            "AWS_MSK_IAM",
            'software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="p" awsRoleArn="arn:aws:iam::1:role/r"'
            ' awsRoleSessionName="s" awsStsRegion="eu-west-1";',
            AwsIamLogin("eu-west-1", "p", "arn:aws:iam::1:role/r", "s"),
        ),
    ],
)
def test_a_login_is_read_for_each_mechanism(mechanism: str, jaas: str, expected: Login) -> None:
    read = flow(sasl(mechanism, jaas))
    assert read.source.security == Security(Tls(), Sasl(mechanism, expected))
    assert flow(sasl(mechanism, jaas, "SASL_PLAINTEXT")).source.security.tls is None


def test_the_service_name_of_kerberos_may_be_a_setting() -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule required;"
    assert login(sasl("GSSAPI", module) + "A.sasl.kerberos.service.name = kfk\n") == KerberosLogin("kfk")


OAUTH_CASES = [
    (
        f'{OAUTH} clientId="me" clientSecret="hush" scope="all" extension_logicalCluster="lkc-1";',
        ENDPOINT + "A.sasl.login.connect.timeout.ms = 500\nA.sasl.oauthbearer.header.urlencode = true\n",
        OAuthLogin(
            "https://login/token",
            "me",
            Secret("hush"),
            "all",
            extensions=(("logicalCluster", "lkc-1"),),
            connect_timeout=0.5,
            url_encode_header=True,
        ),
    ),
    (
        f"{OAUTH};",
        ENDPOINT + "A.sasl.oauthbearer.client.credentials.client.id = me\nA.sasl.login.refresh.window.factor = 0.5\n"
        "A.sasl.oauthbearer.client.credentials.client.secret = hush\nA.sasl.oauthbearer.scope = all\n",
        OAuthLogin("https://login/token", "me", Secret("hush"), "all", refresh_at=0.5),
    ),
    (
        "",
        ENDPOINT + "A.sasl.oauthbearer.client.credentials.client.id = me\n"
        "A.sasl.oauthbearer.client.credentials.client.secret = hush\n",
        OAuthLogin("https://login/token", "me", Secret("hush")),
    ),
    (
        f'{OAUTH} clientId="me" clientSecret="hush" ssl.truststore.location="/ca.pem" ssl.truststore.type="PEM";',
        ENDPOINT,
        OAuthLogin("https://login/token", "me", Secret("hush"), tls=Tls(TrustStore("PEM", "/ca.pem"))),
    ),
    (
        f"{OAUTH};",
        "A.sasl.oauthbearer.token.endpoint.url = file:///var/run/a%20token\n",
        OAuthLogin(token_location="/var/run/a token"),
    ),
    (
        f'{OAUTH} oauth.client.id="me" oauth.client.secret="hush" oauth.token.endpoint.uri="https://sso/t" '
        'oauth.scope="s" oauth.audience="a" oauth.ssl.truststore.location="/t.p12" oauth.ssl.truststore.type="PKCS12" '
        'oauth.ssl.truststore.password="hush2" oauth.ssl.endpoint.identification.algorithm="" '
        'oauth.read.timeout.seconds="60";',
        f"A.sasl.login.callback.handler.class = {STRIMZI}\n",
        OAuthLogin(
            "https://sso/t",
            "me",
            Secret("hush"),
            "s",
            "a",
            tls=Tls(TrustStore("PKCS12", "/t.p12", Secret("hush2")), verify_host=False),
            read_timeout=60.0,
        ),
    ),
    (f'{OAUTH} oauth.access.token="hush";', "", OAuthLogin(token=Secret("hush"))),
    (f'{OAUTH} oauth.access.token.location="/t";', "", OAuthLogin(token_location="/t")),
    (
        f'{OAUTH} awsProfileName="p";',
        "A.sasl.login.callback.handler.class = software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler\n",
        AwsIamLogin(profile="p"),
    ),
]


@pytest.mark.parametrize(("jaas", "added", "expected"), OAUTH_CASES)
def test_tokens_are_fetched_as_kafka_strimzi_and_amazon_write_it(jaas: str, added: str, expected: Login) -> None:
    assert login(sasl("OAUTHBEARER", jaas) + added) == expected


@pytest.mark.parametrize(
    ("added", "says"),
    [
        (sasl("PLAIN", ""), ":5: A.security.protocol: SASL_SSL needs A.sasl.jaas.config, which is missing: for"),
        ("A.security.protocol = SASL_SSL\n", "Krb5LoginModule required useKeyTab=true"),
        (
            f"A.security.protocol = SASL_SSL\nA.sasl.jaas.config = {PLAIN}\n",
            ":6: A.sasl.jaas.config: has PlainLoginModule, but sasl.mechanism is GSSAPI (the default): write "
            "sasl.mechanism = PLAIN",
        ),
        (sasl("OAUTHBEARER", SCRAM), "has ScramLoginModule, but sasl.mechanism is OAUTHBEARER: write sasl.mechanism ="),
        (sasl("PLAIN", "com.example.My required;"), "is not supported: supported are PlainLoginModule, ScramLogin"),
        (sasl("PLAIN", "hush"), "A.sasl.jaas.config: does not end with ';'"),
        (sasl("PLAIN", PLAIN + PLAIN), "has 2 login modules: write one"),
        (sasl("PLAIN", "x.PlainLoginModule required username=me;"), "has no password"),
        (
            sasl("AWS_MSK_IAM", "x.IAMLoginModule required awsRoleExternalId=hush;"),
            "has awsRoleExternalId, which is not",
        ),
        (sasl("OAUTHBEARER", f"{OAUTH};"), "needs sasl.oauthbearer.token.endpoint.url"),
        (sasl("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="hush";'), "asks for an unsecured token"),
        (sasl("OAUTHBEARER", f"{OAUTH};") + ENDPOINT, "has no clientId and clientSecret"),
        (
            sasl("OAUTHBEARER", f'{OAUTH} oauth.refresh.token="hush";'),
            "has oauth.refresh.token, which is not",
        ),
        (sasl("OAUTHBEARER", f'{OAUTH} oauth.client.id="me";'), "needs oauth.token.endpoint.uri, oauth.client.id and"),
        (
            sasl("OAUTHBEARER", f"{OAUTH};") + "A.sasl.login.callback.handler.class = com.example.Mine\n",
            ":8: A.sasl.login.callback.handler.class: Mine is not supported: supported are OAuthBearerLoginCallback",
        ),
        (
            sasl("OAUTHBEARER", f"{OAUTH};") + "A.sasl.oauthbearer.jwt.retriever.class = x.JwtBearerJwtRetriever\n",
            ":8: A.sasl.oauthbearer.jwt.retriever.class: JwtBearerJwtRetriever is not supported",
        ),
        (
            "B.security.protocol = SSL\nB.ssl.keystore.location = /x\n",
            ":6: B.ssl.keystore.location: needs ssl.keystore.password beside it",
        ),
        (
            "B.security.protocol = SSL\nB.ssl.truststore.certificates = hush\n",
            ":6: B.ssl.truststore.certificates: is PEM text, but ssl.truststore.type is JKS: write ssl.truststore.type",
        ),
        ("B.security.protocol = SSL\nB.ssl.keystore.key = hush\nB.ssl.keystore.type = PEM\n", "certificate.chain"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_to_write(added: str, says: str) -> None:
    (error,) = errors(added)
    assert error.startswith("mm2.properties:")
    assert says in error


def test_all_mistakes_are_reported_at_once() -> None:
    lines = [error.split(": ")[0] for error in errors(sasl("PLAIN", "hush") + sasl("PLAIN", "", cluster="B."))]
    assert lines == ["mm2.properties:7", "mm2.properties:8"]


def user(cluster: Cluster | None) -> str:
    """Who logs in."""
    assert cluster is not None
    assert cluster.security.sasl is not None
    assert isinstance(cluster.security.sasl.login, PasswordLogin)
    return cluster.security.sasl.login.username


def as_user(prefix: str, name: str) -> str:
    return prefix + "sasl.jaas.config = " + PLAIN.replace('"me"', name) + "\n"


BASE = "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\n"


def test_a_cluster_has_the_top_levels_login_unless_it_has_its_own() -> None:
    read = flow(BASE + as_user("", "all") + as_user("B.", "b"))
    assert (user(read.source), user(read.target), read.reader, read.writer) == ("all", "b", None, None)


@pytest.mark.parametrize(
    ("added", "users"),
    [
        (as_user("A.consumer.", "c"), ("a", "c", "b", None)),
        (as_user("A.admin.", "x"), ("x", "a", "b", None)),
        (as_user("B.producer.", "p"), ("a", None, "b", "p")),
        (as_user("B.admin.", "x"), ("a", None, "x", "b")),
        (as_user("B.producer.", "p") + as_user("A->B.producer.override.", "o"), ("a", None, "b", "o")),
        (as_user("A.consumer.", "c") + as_user("A->B.source.consumer.", "s"), ("a", "s", "b", None)),
        (as_user("A->B.source.admin.", "x"), ("x", "a", "b", None)),
        (as_user("A->B.target.admin.", "x"), ("a", None, "x", "b")),
        # MM2's driver repeats a cluster's security for each of its clients, so these lose.
        (as_user("A->B.consumer.", "lost") + as_user("A->B.admin.", "lost"), ("a", None, "b", None)),
        (as_user("A->B.source.cluster.", "lost"), ("a", None, "b", None)),
    ],
)
def test_each_client_may_log_in_as_another(added: str, users: tuple[str | None, ...]) -> None:
    read = flow(BASE + as_user("A.", "a") + as_user("B.", "b") + added)
    clients = (read.source, read.reader, read.target, read.writer)
    assert tuple(None if cluster is None else user(cluster) for cluster in clients) == users


def test_a_flows_setting_that_loses_is_warned_about() -> None:
    assert warnings(BASE + as_user("A.", "a") + as_user("B.", "b") + as_user("A->B.consumer.", "lost")) == [
        "mm2.properties:9: 'A->B.consumer.sasl.jaas.config' loses to 'A.sasl.jaas.config' in line 7, as with MM2: "
        "write 'A->B.source.consumer.sasl.jaas.config' to win"
    ]


def test_settings_of_a_flow_apply_where_its_cluster_has_none() -> None:
    of_flow = as_user("A->B.source.cluster.", "s") + as_user("A->B.target.cluster.", "t")
    read = flow(BASE + of_flow + as_user("B.producer.", "p") + "B->A.emit.heartbeats.enabled = false\n")
    assert (user(read.source), user(read.target), read.reader, user(read.writer)) == ("s", "t", None, "p")


def test_settings_that_the_protocol_leaves_without_effect_are_warned_about() -> None:
    assert warnings(as_user("A.", "a") + "ssl.truststore.location = /x\nB.security.protocol = SSL\n") == [
        "mm2.properties:5: A.sasl.jaas.config has no effect: security.protocol is PLAINTEXT, the default"
    ]
    assert warnings("B.security.protocol = SSL\n" + as_user("B.", "b")) == [
        "mm2.properties:6: B.sasl.jaas.config has no effect: security.protocol is SSL"
    ]


def test_a_password_in_clear_text_is_warned_about() -> None:
    assert warnings(sasl("PLAIN", PLAIN, "SASL_PLAINTEXT")) == [
        "mm2.properties:5: A.security.protocol: the password is sent in clear text: SASL_SSL encrypts it"
    ]
    assert warnings(sasl("SCRAM-SHA-512", SCRAM, "SASL_PLAINTEXT")) == []


def test_a_callback_handler_that_is_not_supported_is_warned_about() -> None:
    name = "sasl.client.callback.handler.class"
    assert warnings(sasl("PLAIN", PLAIN) + f"A.{name} = com.example.Vaulted\n") == [
        f"mm2.properties:8: A.{name} has no effect: Vaulted is a Java class that is not supported"
    ]
    iam = sasl("AWS_MSK_IAM", "software.amazon.msk.auth.iam.IAMLoginModule required;")
    assert warnings(iam + f"A.{name} = software.amazon.msk.auth.iam.IAMClientCallbackHandler\n") == []


def test_a_flows_own_setting_without_a_client_is_warned_about() -> None:
    (warning,) = warnings("A->B.security.protocol = SSL\n")
    assert "'A->B.security.protocol' has no effect: security.protocol is read from" in warning


def test_a_reference_that_is_not_resolved_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    jaas = PLAIN.replace("hush", "${env:NOT_SET}")
    assert errors(sasl("PLAIN", jaas)) == [
        "mm2.properties:7: A.sasl.jaas.config: ${env:NOT_SET} is not resolved: there is no 'env' in config.providers"
    ]
    env = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    declared = f"config.providers = env\nconfig.providers.env.class = {env}\n"
    assert errors(declared + sasl("PLAIN", jaas)) == [
        "mm2.properties:9: A.sasl.jaas.config: ${env:NOT_SET} is not resolved: the environment variable "
        "NOT_SET is not set"
    ]
    monkeypatch.setenv("NOT_SET", "now it is")
    assert login(declared + sasl("PLAIN", jaas)) == PasswordLogin("me", Secret("now it is"))


def test_a_login_in_two_lines_is_read_even_without_a_backslash() -> None:
    broken = f'{KAFKA}.plain.PlainLoginModule required \nusername="token" password="hush";'
    added = sasl("PLAIN", broken) + "A->B.topics = products\n"
    assert login(added) == PasswordLogin("token", Secret("hush"))
    assert flow(added).selects("products")
    assert warnings(added) == [
        "mm2.properties:7: A.sasl.jaas.config is read on in the next line, unlike by MM2: end the line with a backslash"
    ]
    escaped = broken.replace("\n", "\\\n  ")
    assert login(sasl("PLAIN", escaped)) == PasswordLogin("token", Secret("hush"))
    assert warnings(sasl("PLAIN", escaped)) == []


def test_a_placeholder_that_nobody_has_replaced_is_warned_about() -> None:
    added = sasl("PLAIN", PLAIN.replace('"hush"', "${API_KEY}"))
    assert login(added) == PasswordLogin("me", Secret("${API_KEY}"))
    assert warnings(added) == [
        "mm2.properties:7: A.sasl.jaas.config has a ${NAME} that is taken as it is: replace it before the file is "
        "read, or write ${env:NAME} and config.providers = env"
    ]


def test_a_client_has_kafkas_settings_from_a_mapping_or_a_file(tmp_path: Path) -> None:
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()) + "group.id = me\n")
    expected = Security(Tls(), Sasl("PLAIN", PasswordLogin("me", Secret("hush"))))
    for config in (settings, file, str(file)):
        assert client_security(config) == expected
    with pytest.raises(ConfigError, match=r"^config: security\.protocol: SASL_SSL needs sasl\.jaas\.config, which"):
        client_security({"security.protocol": "SASL_SSL"})
    with pytest.raises(ConfigError, match=r"client\.properties: there is no such file"):
        client_security(tmp_path / "nowhere" / "client.properties")


def test_the_client_library_takes_them() -> None:
    client = MirrorClient("a:9092", config={"security.protocol": "SSL"})
    assert client._cluster.security == Security(Tls())
    with pytest.raises(ConfigError, match="'TLS' is not one of PLAINTEXT, SSL"):
        MirrorClient("a:9092", config={"security.protocol": "TLS"})


CONNECTOR = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
    **{f"{side}.cluster.security.protocol": "SASL_SSL" for side in ("source", "target")},
    **{f"{side}.cluster.sasl.mechanism": "PLAIN" for side in ("source", "target")},
    **{f"{side}.cluster.sasl.jaas.config": PLAIN.replace('"me"', side) for side in ("source", "target")},
}


@pytest.mark.parametrize(
    ("added", "worker", "users"),
    [
        ({}, {}, ("source", None, "target", None)),
        ({"source.consumer.": "c"}, {}, ("source", "c", "target", None)),
        ({"consumer.": "c"}, {}, ("source", "c", "target", None)),
        ({"admin.": "x", "source.admin.": "y"}, {}, ("y", "source", "x", "target")),
        ({"target.admin.": "x"}, {}, ("source", None, "x", "target")),
        ({"producer.override.": "o"}, {"producer.": "w"}, ("source", None, "target", "o")),
        ({}, {"producer.": "w"}, ("source", None, "target", "w")),
    ],
)
def test_posted_connectors_log_in_as_connects_do(
    added: dict[str, str], worker: dict[str, str], users: tuple[str | None, ...]
) -> None:
    def logins(names: dict[str, str]) -> dict[str, str]:
        return {f"{prefix}sasl.jaas.config": PLAIN.replace('"me"', name) for prefix, name in names.items()}

    read = flow_of([connector("x", CONNECTOR | logins(added))], logins(worker), None).flow
    assert read is not None
    clients = (read.source, read.reader, read.target, read.writer)
    assert tuple(None if cluster is None else user(cluster) for cluster in clients) == users


def test_a_posted_connector_with_a_mistake_is_refused_in_its_own_words() -> None:
    bad = {name: value for name, value in CONNECTOR.items() if name != "source.cluster.sasl.jaas.config"}
    with pytest.raises(ConfigError) as raised:
        flow_of([connector("x", bad)], {}, None)
    subject = "connector x: source.cluster.security.protocol"
    assert str(raised.value).startswith(f"{subject}: SASL_SSL needs source.cluster.sasl.jaas.config, which is missing")
