"""Clusters of the sandbox as a client sees them: three at once, one with three brokers, one with Kafka of 2018."""

import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster, SandboxError, cluster_ports
from heliograph.sandbox.ports import free_ports
from ports import free_port
from sandbox.watching import is_running
from waiting import PATIENCE, until

PORT = free_port()

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="s3cret";'


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, SandboxCluster]]:
    specs = {
        "one": ClusterSpec(
            ports=(PORT,),
            settings={"message.max.bytes": "123456", "listener.name.login.plain.sasl.jaas.config": LOGIN}
            | {"sasl.enabled.mechanisms": "PLAIN"},
            listeners={"LOGIN": "SASL_PLAINTEXT"},
            fast_start=True,
        ),
        "three": ClusterSpec(brokers=3, fast_start=True),
        "old": ClusterSpec(version="1.1.1", fast_start=True),
    }
    with Sandbox() as sandbox:
        assert [cluster.alias for cluster in sandbox.start(specs)] == ["one", "three", "old"]
        yield sandbox.clusters


def create(cluster: SandboxCluster, topic: str, copies: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": copies}})
    admin.close()


def write(cluster: SandboxCluster, topic: str, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), acks="all")
    for value in values:
        producer.send(topic, value).get(timeout=PATIENCE)
    producer.close()


def read(cluster: SandboxCluster, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap.split(","), auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    values = [next(consumer).value for _ in range(count)]
    consumer.close()
    return values


def test_a_cluster_of_one_broker_stores_and_returns_records(clusters: dict[str, SandboxCluster]) -> None:
    create(clusters["one"], "t")
    write(clusters["one"], "t", b"1", b"2")
    assert read(clusters["one"], "t", 2) == [b"1", b"2"]


def test_a_kafka_of_2018_with_its_zookeeper_stores_and_returns_records(clusters: dict[str, SandboxCluster]) -> None:
    assert clusters["old"].version == "1.1.1"
    create(clusters["old"], "t")
    write(clusters["old"], "t", b"1", b"2")
    assert read(clusters["old"], "t", 2) == [b"1", b"2"]


def test_given_ports_and_settings_take_effect(clusters: dict[str, SandboxCluster]) -> None:
    assert clusters["one"].bootstrap == f"127.0.0.1:{PORT}"
    admin = KafkaAdminClient(bootstrap_servers=clusters["one"].bootstrap)
    described = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")
    admin.close()
    settings = described["broker"]["1"]
    assert settings["message.max.bytes"]["value"] == "123456"
    assert settings["offsets.topic.replication.factor"]["value"] == "1"
    assert settings["auto.create.topics.enable"]["value"] == "false"


def test_brokers_listen_on_loopback_only(clusters: dict[str, SandboxCluster]) -> None:
    for cluster in clusters.values():
        for pid in cluster.pids().values():
            listening = [c.laddr.ip for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN]
            assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_an_added_listener_lets_in_who_knows_the_password(clusters: dict[str, SandboxCluster]) -> None:
    admin = KafkaAdminClient(
        bootstrap_servers=clusters["one"].bootstrap_of("LOGIN"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="bob",
        sasl_plain_password="s3cret",
    )
    assert isinstance(admin.list_topics(), list)
    admin.close()


def test_one_of_three_brokers_can_be_killed_and_comes_back_with_its_port_and_data(
    clusters: dict[str, SandboxCluster],
) -> None:
    three = clusters["three"]
    create(three, "t", copies=3)
    write(three, "t", b"before")
    addresses, pids = three.bootstrap, three.pids()
    three.kill(2)
    assert not is_running(pids[2])
    assert sorted(three.pids()) == [1, 3]
    write(three, "t", b"without 2")
    three.start_broker(2)
    assert three.bootstrap == addresses
    assert three.pids() == pids | {2: three.pids()[2]}
    # It fetches what the others hold, too; this partition was on broker 2 before.
    assert (three.folder(2) / "data" / "t-0" / "00000000000000000000.log").stat().st_size > 0
    write(three, "t", b"after")
    assert read(three, "t", 3) == [b"before", b"without 2", b"after"]
    assert three.deaths() == []


def test_a_broker_can_be_paused_and_goes_on(clusters: dict[str, SandboxCluster]) -> None:
    cluster = clusters["one"]
    cluster.pause(1)
    with socket.create_connection(("127.0.0.1", cluster.port(1)), timeout=0.3) as connection:
        connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))
        with pytest.raises(TimeoutError):
            connection.recv(1)
        cluster.resume(1)
        connection.settimeout(PATIENCE)
        assert connection.recv(1)
    cluster.wait_until_up()


def test_a_broker_of_a_kafka_of_2018_can_be_killed_and_comes_back(clusters: dict[str, SandboxCluster]) -> None:
    old = clusters["old"]
    create(old, "u")
    write(old, "u", b"before")
    old.kill(1)
    old.start_broker(1)
    write(old, "u", b"after")
    assert read(old, "u", 2) == [b"before", b"after"]


def test_a_broker_that_is_stopped_is_not_a_death_but_one_that_ends_by_itself_is() -> None:
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"A": ClusterSpec(fast_start=True)})
        cluster.stop_broker(1)
        assert sandbox.deaths() == []
        cluster.start_broker(1)
        with pytest.raises(SandboxError, match="A-1 is running already"):
            cluster.start_broker(1)
        psutil.Process(cluster.pids()[1]).kill()
        until(sandbox.deaths)
        (death,) = sandbox.deaths()
        assert (death.alias, death.name, death.status) == ("A", "A-1", -9)
        assert str(death).startswith("A-1 ended (killed by signal 9)")
        assert "Kafka Server started" in death.log.read_text()


def test_a_broker_that_does_not_start_is_shown_with_its_reason() -> None:
    with Sandbox() as sandbox:
        with pytest.raises(SandboxError, match=r"(?s)A-1 ended \(exit status 1\).*Invalid value many") as failure:
            sandbox.start({"A": ClusterSpec(settings={"num.io.threads": "many"}, fast_start=True)})
        assert "\tat " not in str(failure.value)
        assert sandbox.clusters == {}


def test_a_port_that_is_taken_between_the_choice_and_the_start_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, Sandbox() as sandbox:
        taken = other.getsockname()[1]
        choices = [[taken, *free_ports(2)], free_ports(3)]
        monkeypatch.setattr(cluster_ports, "free_ports", lambda count, avoid: choices.pop(0))
        (cluster,) = sandbox.start({"A": ClusterSpec(fast_start=True)})
        assert cluster.port(1) != taken
        assert choices == []


def test_a_given_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, Sandbox() as sandbox:
        port = other.getsockname()[1]
        with pytest.raises(SandboxError, match=f"cluster A: port {port} is in use by another program"):
            sandbox.start({"A": ClusterSpec(ports=(port,))})


def test_a_given_folder_stays_and_is_continued_with(tmp_path: Path) -> None:
    folder = tmp_path / "données = 1"
    for round_ in (1, 2):
        with Sandbox(folder) as sandbox:
            (cluster,) = sandbox.start({"A": ClusterSpec(fast_start=True)})
            if round_ == 1:
                create(cluster, "t")
            write(cluster, "t", b"%d" % round_)
            assert read(cluster, "t", round_) == [b"1", b"2"][:round_]
        assert (folder / "A-1" / "server.log").exists()


def test_the_properties_mirror_the_first_two_clusters_to_each_other(clusters: dict[str, SandboxCluster]) -> None:
    with Sandbox() as sandbox:
        with pytest.raises(SandboxError, match="two clusters"):
            sandbox.properties()
        sandbox.clusters.update(clusters)
        text = sandbox.properties()
        sandbox.clusters.clear()
    settings = dict(line.split(" = ") for line in text.splitlines() if line and not line.startswith("#"))
    assert settings["clusters"] == "one, three"
    assert settings["three.bootstrap.servers"] == clusters["three"].bootstrap
    assert settings["one->three.enabled"] == settings["three->one.enabled"] == "true"
    assert {value for key, value in settings.items() if key.endswith("replication.factor")} == {"1"}
    assert settings["refresh.topics.interval.seconds"] == "5"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"brokers": 0}, "one broker or more"),
        ({"version": "latest"}, "not a version of Kafka"),
        ({"ports": (9092, 9093)}, "2 ports are too many for 1 broker"),
        ({"ports": (9092, 9092), "brokers": 2}, "given twice"),
        ({"ports": (70000,)}, "between 1 and 65535"),
        ({"heap_mb": 8}, "64 MB of heap or more"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(SandboxError, match=message):
        ClusterSpec(**wrong)  # type: ignore[arg-type]
