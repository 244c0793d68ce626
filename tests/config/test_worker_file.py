"""A Connect worker's own file: what is read of it, and what is said if it will not do."""

from pathlib import Path

import pytest

from heliograph.config import ConfigError
from heliograph.config.resolve.worker_file import StorageTopic, load_worker
from heliograph.model.connecting import Connecting
from heliograph.model.secret import Secret
from heliograph.model.security import PasswordLogin, Sasl, Security, Tls, TrustStore

GOOD = """\
bootstrap.servers=b1:9092,b2:9092
group.id=connect-cluster
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
offset.storage.replication.factor=1
status.storage.partitions=2
"""


def _file(folder: Path, *lines: str, without: str = "") -> Path:
    file = folder / "connect-distributed.properties"
    kept = [line for line in GOOD.splitlines() if not without or not line.startswith(without)]
    file.write_text("\n".join([*kept, *lines]))
    return file


def test_topics_group_and_address_are_read(tmp_path: Path) -> None:
    worker = load_worker(_file(tmp_path, "producer.compression.type=zstd"))
    assert worker.cluster.bootstrap_servers == (("b1", 9092), ("b2", 9092))
    assert (worker.group, worker.configs) == ("connect-cluster", StorageTopic("connect-configs", 1, 3))
    assert worker.offsets == StorageTopic("connect-offsets", 25, 1)
    assert worker.status == StorageTopic("connect-status", 2, 3)
    assert worker.settings["producer.compression.type"] == "zstd"


def test_how_the_worker_connects_is_read(tmp_path: Path) -> None:
    worker = load_worker(_file(tmp_path, "connections.max.idle.ms=60000", "offset.flush.interval.ms=10000"))
    assert worker.cluster.connecting == Connecting(max_idle=60.0)
    assert worker.settings["offset.flush.interval.ms"] == "10000"
    with pytest.raises(ConfigError, match=r"connect-distributed.properties:8: send.buffer.bytes: '0' is too small"):
        load_worker(_file(tmp_path, "send.buffer.bytes=0"))


@pytest.mark.parametrize(
    ("lines", "address", "advertised"),
    [
        ((), ("", 8083), "127.0.0.1:8083"),
        (("listeners=http://:18083",), ("", 18083), "127.0.0.1:18083"),
        (("listeners=HTTPS://h:1, HTTP://myhost:18083", "ssl.keystore.location=k.jks"), ("h", 1), "h:1"),
        (("listeners=http://[::1]:80",), ("::1", 80), "::1:80"),
        (("listeners=http://0.0.0.0:80", "rest.advertised.host.name=me"), ("", 80), "me:80"),
        (("rest.host.name=old", "rest.port=81", "rest.advertised.port=99"), ("old", 81), "old:99"),
    ],
)
def test_the_first_listener_is_the_advertised_one(
    tmp_path: Path, lines: tuple[str, ...], address: tuple[str, int], advertised: str
) -> None:
    worker = load_worker(_file(tmp_path, *lines))
    first = worker.rest.listeners[0]
    assert ((first.host, first.port), worker.advertised) == (address, advertised)


@pytest.mark.parametrize(
    ("lines", "without", "says"),
    [
        ((), "group.id", "no group.id"),
        ((), "status.storage.topic", "no status.storage.topic"),
        (("bootstrap.servers=b1",), "", ":8: bootstrap.servers: 'b1' has an address without a port"),
        (("offset.storage.partitions=x",), "", ":8: offset.storage.partitions: 'x' is not a whole number"),
        (("listeners=https://h:8443",), "", ":8: listeners: https needs a certificate"),
        (("listeners=here",), "", ":8: listeners: 'here' has 'here', which is not an address"),
    ],
)
def test_a_bad_value_is_named_with_its_line(tmp_path: Path, lines: tuple[str, ...], without: str, says: str) -> None:
    file = _file(tmp_path, *lines, without=without)
    with pytest.raises(ConfigError) as error:
        load_worker(file)
    assert str(error.value).startswith(str(file))
    assert says in str(error.value)


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    file = _file(tmp_path, "offset.storage.partitions=x", "listeners=https://h:1", without="group.id")
    with pytest.raises(ConfigError) as error:
        load_worker(file)
    assert [text.replace(str(file), "") for text in error.value.errors] == [
        ": no group.id: a Connect worker's file must have it",
        ":7: offset.storage.partitions: 'x' is not a whole number",
        ":8: listeners: https needs a certificate: set listeners.https.ssl.keystore.location, or ssl.keystore.location",
    ]


def test_a_webhook_is_not_shown(tmp_path: Path) -> None:
    added = ("heliograph.notify.webhook=https://h/hush", "producer.ssl.key.password=hush", "ssl.key.password=hush")
    worker = load_worker(_file(tmp_path, *added))
    assert (worker.webhook, worker.settings) == ("https://h/hush", {"producer.ssl.key.password": "hush"})
    assert "hush" not in repr(worker)
    with pytest.raises(ConfigError) as error:
        load_worker(_file(tmp_path, "heliograph.notify.webhook=hush"))
    assert "hush" not in str(error.value)


def test_the_storage_cluster_has_the_workers_own_security(tmp_path: Path) -> None:
    jaas = 'x.ScramLoginModule required username="me" password="hush";'
    lines = ("security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512", f"sasl.jaas.config={jaas}")
    worker = load_worker(_file(tmp_path, *lines, "ssl.truststore.location=/t.jks"))
    login = Sasl("SCRAM-SHA-512", PasswordLogin("me", Secret("hush")))
    assert worker.cluster.security == Security(Tls(TrustStore(location="/t.jks")), login)
    assert (worker.warnings, worker.secrets_refresh) == ((), 30.0)
    assert "hush" not in repr(worker)


def test_a_workers_security_without_a_protocol_is_warned_about(tmp_path: Path) -> None:
    (warning,) = load_worker(_file(tmp_path, "ssl.truststore.location=/t.jks")).warnings
    assert str(warning).endswith(
        ":8: ssl.truststore.location has no effect: security.protocol is PLAINTEXT, the default"
    )


def test_all_mistakes_of_a_workers_security_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load_worker(_file(tmp_path, "security.protocol=TLS", "ssl.keystore.type=X", "listeners=here"))
    assert [text.split(": ")[1] for text in error.value.errors] == [
        "listeners",
        "security.protocol",
        "ssl.keystore.type",
    ]
