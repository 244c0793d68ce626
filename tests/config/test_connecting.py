"""How clients connect: which client reads a setting from where, and what a value means."""

from __future__ import annotations

import pickle

import pytest

from heliograph.config.messages import ConfigError
from heliograph.config.read.mm2_file import from_properties
from heliograph.config.read.properties import parse
from heliograph.config.resolve.deployment import assemble
from heliograph.config.show.explain import explain
from heliograph.copy.work import Work
from heliograph.engine.sealing import Seal
from heliograph.model.backoff import Backoff
from heliograph.model.connecting import Connecting
from heliograph.model.flow import Cluster, Flow

from .files import FILE, MINIMAL, flow, notes, warnings


def _clients(read: Flow) -> tuple[Cluster, Cluster, Cluster, Cluster]:
    """The source as admin client and consumer reach it, the target as admin client and producer do."""
    return read.source, read.reader or read.source, read.target, read.writer or read.target


def _connecting(added: str) -> list[Connecting]:
    return [client.connecting for client in _clients(flow(added))]


def _buffers(added: str) -> list[int]:
    return [connecting.send_buffer for connecting in _connecting(added)]


def test_without_settings_all_clients_connect_alike() -> None:
    read = flow()
    assert (read.reader, read.writer) == (None, None)
    assert _connecting("") == [Connecting()] * 4


def test_a_client_reads_its_own_setting_then_its_clusters_then_the_top_level() -> None:
    assert _buffers("send.buffer.bytes = 1\n") == [1, 1, 1, 1]
    assert _buffers("send.buffer.bytes = 1\nA.send.buffer.bytes = 2\n") == [2, 2, 1, 1]
    assert _buffers("A.send.buffer.bytes = 2\nA.consumer.send.buffer.bytes = 3\n") == [2, 3, -1, -1]
    assert _buffers("A.admin.send.buffer.bytes = 3\n") == [3, -1, -1, -1]
    assert _buffers("B.admin.send.buffer.bytes = 3\nB.producer.send.buffer.bytes = 4\n") == [-1, -1, 3, 4]
    assert _buffers("A->B.admin.send.buffer.bytes = 3\n") == [3, -1, 3, -1]
    flows = "A->B.source.admin.send.buffer.bytes = 5\nA->B.target.admin.send.buffer.bytes = 6\n"
    assert _buffers(flows + "A->B.admin.send.buffer.bytes = 3\n") == [5, -1, 6, -1]
    both = "A->B.consumer.send.buffer.bytes = 3\nA->B.producer.override.send.buffer.bytes = 4\n"
    assert _buffers(both) == [-1, 3, -1, 4]


def test_the_request_timeout_of_each_client_is_its_own() -> None:
    added = (
        "A.request.timeout.ms = 1000\nA.consumer.request.timeout.ms = 2000\n"
        "B.request.timeout.ms = 3000\nB.producer.request.timeout.ms = 4000\n"
    )
    assert [client.request_timeout for client in _clients(flow(added))] == [1.0, 2.0, 3.0, 4.0]
    assert flow(added).writing.request_timeout == 4.0


def test_a_reconnect_backoff_does_not_grow_if_only_the_first_is_set() -> None:
    """As Kafka's clients do."""
    assert _connecting("")[0].reconnect == Backoff(0.05, 1.0)
    assert _connecting("reconnect.backoff.ms = 300\n")[0].reconnect == Backoff(0.3, 0.3)
    assert _connecting("reconnect.backoff.max.ms = 300\n")[0].reconnect == Backoff(0.05, 0.3)
    both = "reconnect.backoff.ms = 100\nreconnect.backoff.max.ms = 10000\n"
    assert _connecting(both)[0].reconnect == Backoff(0.1, 10.0)


def test_a_setup_timeout_grows_only_if_the_longest_is_set() -> None:
    assert _connecting("")[0].setup_timeout == Backoff(5.0, 5.0)
    assert _connecting("socket.connection.setup.timeout.ms = 20000\n")[0].setup_timeout == Backoff(20.0, 20.0)
    both = "socket.connection.setup.timeout.ms = 2000\nsocket.connection.setup.timeout.max.ms = 8000\n"
    assert _connecting(both)[0].setup_timeout == Backoff(2.0, 8.0)


def test_of_two_retry_backoffs_the_longer_counts() -> None:
    assert flow().retry_backoff == Backoff(0.1, 5.0)
    assert flow("retry.backoff.ms = 200\nretry.backoff.max.ms = 2000\n").retry_backoff == Backoff(0.2, 2.0)
    assert flow("A.consumer.retry.backoff.ms = 300\nB.retry.backoff.ms = 200\n").retry_backoff == Backoff(0.3, 5.0)
    assert flow("B.producer.retry.backoff.max.ms = 9000\n").retry_backoff == Backoff(0.1, 9.0)
    assert "has no effect: retry.backoff.ms is read from" in warnings("B.admin.retry.backoff.ms = 1\n")[0]


def test_a_connector_reads_no_buffer_size_of_its_cluster_as_with_mm2() -> None:
    added = "A->B.source.cluster.send.buffer.bytes = 1\n"
    assert _buffers(added) == [-1] * 4
    assert (
        "has no effect: send.buffer.bytes is read from 'A->B.source.consumer.send.buffer.bytes'" in warnings(added)[0]
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("send.buffer.bytes = 0", "must be -1 or more and not 0"),
        ("receive.buffer.bytes = -2", "must be -1 or more and not 0"),
        ("reconnect.backoff.ms = soon", "is not a whole number"),
        ("socket.connection.setup.timeout.ms = 0", "must be 1 or more"),
        ("metadata.max.age.ms = -1", "must be 0 or more"),
        ("client.dns.lookup = all", "is not one of use_all_dns_ips, resolve_canonical_bootstrap_servers_only"),
        ("B.offset.flush.interval.ms = 0", "must be 1 or more"),
    ],
)
def test_a_value_that_kafka_refuses_is_an_error(line: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        flow(f"{line}\n")
    assert f"{FILE}:5: {line.split()[0]}" in str(raised.value)
    assert says in str(raised.value)


def test_values_of_older_clients_are_accepted() -> None:
    assert notes("client.dns.lookup = default\nconnections.max.idle.ms = -1\n") == []
    assert _connecting("connections.max.idle.ms = -1\n")[0].max_idle < 0


def test_the_settings_reach_the_executors() -> None:
    read = flow("A.consumer.send.buffer.bytes = 1\nB.producer.reconnect.backoff.ms = 2000\nretry.backoff.ms = 7\n")
    work = Work(read, "lease", 20.0, ())
    seal = Seal()
    assert pickle.loads(pickle.dumps(seal)).open(seal.close(work)).flow == read


def test_explain_shows_the_value_of_each_client_and_where_it_comes_from() -> None:
    added = "send.buffer.bytes = 1\nA.consumer.send.buffer.bytes = 2\nA->B.source.admin.send.buffer.bytes = 3\n"
    settings = from_properties(FILE, parse((MINIMAL + added).encode(), FILE))
    deployment = assemble(settings)

    def value(key: str) -> tuple[str, str]:
        shown = explain(settings, deployment, key)
        assert shown.acted == ""
        origin = next(origin for origin in shown.origins if origin.subject in ("A", "A->B"))
        assert origin.value is not None
        return origin.value.value, origin.value.written

    assert value("send.buffer.bytes") == ("1", "send.buffer.bytes")
    assert value("consumer.send.buffer.bytes") == ("2", "A.consumer.send.buffer.bytes")
    assert value("source.admin.send.buffer.bytes") == ("3", "A->B.source.admin.send.buffer.bytes")
    assert value("target.admin.send.buffer.bytes") == ("1", "send.buffer.bytes")
    assert value("producer.override.send.buffer.bytes") == ("1", "send.buffer.bytes")
    assert value("A->B.consumer.retry.backoff.max.ms") == ("5000", "")
    assert value("offset.flush.interval.ms") == ("60000", "")
