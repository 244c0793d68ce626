"""Strimzi's `KafkaConnector`, one connector as a resource, and `KafkaConnect`, the workers that run it.

A connector's label names its `KafkaConnect`, which may be in another file.
"""

from heliograph.config.declare.catalogue import ignored_strimzi_fields
from heliograph.config.read import strimzi_security
from heliograph.config.read.connector import Worker, from_config
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.strimzi import (
    CONNECTOR_FIELDS,
    WORKER,
    Resource,
    check_auto_restart,
    config_of,
    connector_state,
    values,
)
from heliograph.config.read.tree import Table

CONNECTOR, CONNECT = "KafkaConnector", "KafkaConnect"
_LABEL = "strimzi.io/cluster"
# What Strimzi's operator took before v1, in which a resource must have these fields.
_DEFAULTS = {
    "group.id": "connect-cluster",
    "config.storage.topic": "connect-cluster-configs",
    "status.storage.topic": "connect-cluster-status",
    "offset.storage.topic": "connect-cluster-offsets",
}


def read_connector(read: Resource, table: Table) -> None:
    """Adds the connector; or a warning, if it is none of MirrorMaker 2's."""
    spec = read.spec(table)
    name, worker = _metadata(read, table)
    read.check(spec, "spec.", ("class", *CONNECTOR_FIELDS), ignored_strimzi_fields("connector"))
    check_auto_restart(read, spec, "spec.")
    given = {
        **config_of(read, spec, "spec."),
        **values(spec, "spec.", {"class": "connector.class", "tasksMax": "tasks.max"}),
    }
    state = connector_state(read, spec, "spec.")
    read.add(from_config(read.file, f"connector {name}", given, state=state, worker=worker))


def read_connect(read: Resource, table: Table) -> None:
    spec = read.spec(table)
    name, _ = _metadata(read, table)
    known = ("bootstrapServers", "config", "tls", "authentication", "build", "plugins", *WORKER)
    is_stopped = read.check_pods(spec, known)
    config = config_of(read, spec, "spec.")
    defaults = {setting: FileEntry(0, setting, value) for setting, value in _DEFAULTS.items()}
    own = values(spec, "spec.", {**WORKER, "bootstrapServers": "bootstrap.servers"})
    # Workers write the records: their security is that of the producer.
    producer = {key.removeprefix("producer.") for key in config if key.startswith("producer.")}
    security, notes = strimzi_security.settings(read.file, name, spec, "spec.", producer)
    read.notes += notes
    of_producer = {f"producer.{setting}": entry for setting, entry in security.items()}
    read.workers[name] = Worker(read.file, {**defaults, **of_producer, **config, **own}, is_stopped)


def _metadata(read: Resource, table: Table) -> tuple[str, str]:
    """The name of the resource, and that of the `KafkaConnect` in its labels, which is empty if it has none."""
    field = table.get("metadata")
    metadata = field.value if field is not None and isinstance(field.value, Table) else Table(())
    if not metadata.text("name"):
        raise read.error(table.line, "no metadata.name")
    labels = metadata.get("labels")
    label = labels.value.text(_LABEL) if labels is not None and isinstance(labels.value, Table) else ""
    return metadata.text("name"), label
