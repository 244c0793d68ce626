"""Strimzi's resources of a file, by their kinds: `KafkaMirrorMaker2`, or `KafkaConnector` and its `KafkaConnect`."""

from collections.abc import Iterator

from heliograph.config.messages import ConfigError, ConfigNotice, Consequence
from heliograph.config.read import strimzi, strimzi_connect
from heliograph.config.read.strimzi import Resource
from heliograph.config.read.tree import Node, Table

_READERS = {
    strimzi.KIND: strimzi.read_resource,
    strimzi_connect.CONNECTOR: strimzi_connect.read_connector,
    strimzi_connect.CONNECT: strimzi_connect.read_connect,
}


def is_resource(tree: Node) -> bool:
    return isinstance(tree, Table) and tree.get("kind") is not None and tree.get("apiVersion") is not None


def resources(file: str, trees: tuple[Node, ...]) -> Resource:
    """All resources of a file together; those of other kinds are ignored. Raises `ConfigError` if there is nothing."""
    read = Resource(file)
    kinds = set()
    for table in _tables(trees):
        kind = table.text("kind")
        if kind in _READERS:
            kinds.add(kind)
            with read.errors:
                _READERS[kind](read, table)
        else:
            text = f"a resource of kind {kind} is ignored"
            read.notes.append(ConfigNotice(table.line, "kind", text, file, Consequence.NONE))
    if not read.connectors:
        read.errors.raise_collected()
    if not read.connectors and kinds <= {strimzi.KIND}:
        raise ConfigError(f"{file}: no {strimzi.KIND} with a connector is in it")
    read.warnings += read.stopped
    return read


def _tables(trees: tuple[Node, ...]) -> Iterator[Table]:
    for tree in trees:
        items = tree.get("items") if isinstance(tree, Table) and tree.text("kind").endswith("List") else None
        if items is not None and isinstance(items.value, tuple):
            yield from _tables(items.value)
        elif isinstance(tree, Table):
            yield tree
