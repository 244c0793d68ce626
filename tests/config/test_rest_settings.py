"""Where the REST API listens and who may use it, as files say it."""

from pathlib import Path

import pytest

from heliograph.config import ConfigError
from heliograph.config.read.formats import read_all
from heliograph.config.read.rest_settings import read_rest_settings
from heliograph.model.rest_settings import (
    CLASSES,
    FILES,
    NONE,
    REQUIRED,
    Jwks,
    Listener,
    ListenerTls,
    RestOptions,
    RestSettings,
)
from heliograph.model.secret import Secret
from heliograph.model.security import JKS, PEM, PKCS12, KeyStore, TrustStore

BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


def _read(folder: Path, *lines: str, options: RestOptions = RestOptions()) -> RestSettings:  # noqa: B008
    file = folder / "mm2.properties"
    clusters = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"
    file.write_text(clusters + "\n".join(lines))
    return read_rest_settings(read_all([file]), options)


def _error(folder: Path, *lines: str) -> str:
    with pytest.raises(ConfigError) as error:
        _read(folder, *lines)
    return str(error.value).replace(str(folder / "mm2.properties"), "")


def test_a_file_without_a_word_about_it_has_no_listener(tmp_path: Path) -> None:
    assert _read(tmp_path) == RestSettings()
    assert not RestSettings().needs_login


def test_listeners_and_their_tls_are_connects(tmp_path: Path) -> None:
    settings = _read(
        tmp_path,
        "listeners=http://127.0.0.1:8083, https://:8443",
        "listeners.https.ssl.keystore.location=/etc/rest.p12",
        "listeners.https.ssl.keystore.type=PKCS12",
        "listeners.https.ssl.keystore.password=hush",
        "listeners.https.ssl.truststore.location=/etc/ca.pem",
        "listeners.https.ssl.truststore.type=PEM",
        "listeners.https.ssl.client.auth=required",
        "ssl.keystore.location=/etc/of-the-clusters.jks",
    )
    tls = ListenerTls(
        KeyStore(PKCS12, "/etc/rest.p12", Secret("hush")), "", TrustStore(PEM, "/etc/ca.pem"), client_auth=REQUIRED
    )
    assert settings.listeners == (Listener("127.0.0.1", 8083), Listener("", 8443, tls))
    assert settings.needs_login
    assert "hush" not in repr(settings)


def test_without_the_prefix_the_stores_are_those_of_the_clusters(tmp_path: Path) -> None:
    (listener,) = _read(tmp_path, "listeners=https://h:1", "ssl.keystore.location=k", "ssl.client.auth=none").listeners
    assert listener.tls == ListenerTls(KeyStore(JKS, "k"), client_auth=NONE)


def test_users_of_connects_extension_are_found_as_connect_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "set heliograph.rest.users" in _error(tmp_path, f"rest.extension.classes={BASIC}")
    users = "heliograph.rest.users=/etc/users"
    assert _read(tmp_path, f"rest.extension.classes={BASIC}", users).users == "/etc/users"
    jaas = tmp_path / "connect.jaas"
    jaas.write_text(
        "KafkaConnect {\n  org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required\n"
        '  file="/etc/connect.password";\n};\n'
    )
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={jaas} -Dx=y")
    assert _read(tmp_path, f"rest.extension.classes={BASIC}").users == "/etc/connect.password"
    jaas.write_text("KafkaClient { x required; };")
    assert "has no PropertyFileLoginModule with a file" in _error(tmp_path, f"rest.extension.classes={BASIC}")
    assert "com.example.Mine cannot be loaded here" in _error(tmp_path, "rest.extension.classes=com.example.Mine")


def test_the_rest_is_heliographs_own(tmp_path: Path) -> None:
    assert _read(
        tmp_path,
        "heliograph.rest.tokens=/t",
        "heliograph.rest.roles=/r",
        "heliograph.rest.open=/health, /metrics",
        "heliograph.rest.allow=classes, files",
        "heliograph.rest.requests.per.second=7",
        "heliograph.rest.jwks.url=https://idp/keys",
        "heliograph.rest.jwks.audience=me",
        "access.control.allow.origin=https://a.example",
        "access.control.allow.methods=GET,PUT",
    ) == RestSettings(
        tokens="/t",
        roles="/r",
        jwks=Jwks("https://idp/keys", "me"),
        open_paths=frozenset({"/health", "/metrics"}),
        allowed=frozenset({CLASSES, FILES}),
        allow_origin="https://a.example",
        allow_methods=("GET", "PUT"),
        requests_per_second=7,
    )


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("listeners=https://h:1",), "https needs a certificate"),
        (("listeners=ftp://h:1",), "is not an address"),
        (("listeners=http://h:99999",), "is not an address"),
        (
            ("listeners=https://h:1", "ssl.keystore.location=k", "ssl.client.auth=required"),
            ":7: ssl.client.auth: no issuer is trusted: set ssl.truststore.location",
        ),
        (("heliograph.rest.open=health",), "'health', which is no path"),
        (("heliograph.rest.allow=everything",), "not one of classes, providers, files"),
        (("heliograph.rest.jwks.url=http://idp/keys",), "is no https:// address"),
        (("heliograph.rest.jwks.url=https://idp/keys", "heliograph.rest.roles=r"), "set heliograph.rest.jwks.audience"),
        (
            ("heliograph.rest.jwks.url=https://idp/keys", "heliograph.rest.jwks.audience=me"),
            "everyone with a token would be an operator",
        ),
    ],
)
def test_a_value_that_will_not_do_is_named(tmp_path: Path, lines: tuple[str, ...], says: str) -> None:
    assert says in _error(tmp_path, *lines)


def test_options_of_the_command_win(tmp_path: Path) -> None:
    tls = ListenerTls(KeyStore(PEM, "cert"), "key")
    file = ("listeners=http://127.0.0.1:1", "heliograph.rest.users=/etc/users")
    assert _read(tmp_path, *file, options=RestOptions(tls=tls, users="/mine")) == RestSettings(
        (Listener("127.0.0.1", 1, tls),), "/mine"
    )
    options = RestOptions((("http", "", 2),))
    assert _read(tmp_path, *file, options=options).listeners == (Listener("", 2),)
