"""Properties files of Kafka that are no `mm2.properties`, recognised by their keys: what they are, and what to do."""

from collections.abc import Mapping

from heliograph.config.declare import catalogue
from heliograph.config.declare.locations import Scope
from heliograph.config.read.entry import FileEntry

_BROKER = {"broker.id", "node.id", "log.dirs", "zookeeper.connection.timeout.ms", "process.roles"}
_CLIENT = {"bootstrap.servers", "zookeeper.connect"}
_MM2 = "an mm2.properties has 'clusters = A, B' and an address for each, 'A.bootstrap.servers = host:9092'"


def what_it_is(entries: Mapping[str, FileEntry]) -> str:
    """For a file without `clusters` that is not a worker's."""
    keys = entries.keys()
    if keys & _BROKER:
        return f"this is the file of a broker: {_MM2}"
    if keys & _CLIENT and sum(map(_is_of_client, keys)) * 2 >= len(keys):
        return (
            "this is the file of a client, as MirrorMaker 1 (kafka-mirror-maker.sh) has for its consumer and its "
            f"producer: {_MM2}"
        )
    if "source.cluster.alias" in keys or "source.cluster.bootstrap.servers" in keys:
        return "this is a connector without connector.class: write that of MirrorSourceConnector, for example"
    return "no clusters: write for example 'clusters = A, B' and an address for each"


def _is_of_client(key: str) -> bool:
    return any(catalogue.find(Scope.FLOW, f"{client}.{key}") for client in ("consumer", "producer.override"))
