"""Bodies of requests that alter offsets, checked as MirrorMaker 2's connectors check them (KIP-875)."""

from collections.abc import Mapping
from typing import Any

from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE
from heliograph.model.partitions import TopicPartition
from heliograph.rest.problems import Problem

_MOST_PARTITION = 2**31 - 1
_MOST_OFFSET = 2**63 - 1
# What names a partition of each connector.
_TEXTS = {
    SOURCE: ("cluster", "topic"),
    CHECKPOINT: ("group", "topic"),
    HEARTBEAT: ("sourceClusterAlias", "targetClusterAlias"),
}
_WITH_PARTITION = (SOURCE, CHECKPOINT)
_OF_SOURCE = {"cluster", "topic", "partition"}

Fields = Mapping[str, Any]
PartitionOffset = tuple[Fields | None, Fields | None]


def entries_of(body: Fields) -> list[PartitionOffset]:
    """Pairs of partition and offset. Raises Problem."""
    for key in body.keys() - {"offsets"}:
        raise Problem(400, f'Unrecognized field "{_shown(key)}": the only one is offsets')
    entries = body.get("offsets")
    if not entries:
        raise Problem(400, "Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(entries, list):
        raise Problem(400, "offsets must be a list of objects with partition and offset")
    return [_entry(entry) for entry in entries]


def _entry(entry: object) -> PartitionOffset:
    if not isinstance(entry, dict):
        raise Problem(400, f"{_shown(entry)} in offsets must be an object with partition and offset")
    for key in entry.keys() - {"partition", "offset"}:
        raise Problem(400, f'Unrecognized field "{_shown(key)}" in offsets: known are partition and offset')
    partition, offset = entry.get("partition"), entry.get("offset")
    for name, fields in (("partition", partition), ("offset", offset)):
        if fields is not None and not isinstance(fields, dict):
            raise Problem(400, f"{name} {_shown(fields)} must be an object, or null")
        _check_primitive(fields or {})
    return partition, offset


def _check_primitive(fields: Fields) -> None:
    for key, value in fields.items():
        if isinstance(value, dict | list):
            kind = "MAP" if isinstance(value, dict) else "ARRAY"
            raise Problem(
                400, f"Offsets may only contain primitive types as values, but field {_shown(key)} contains {kind}"
            )


def check_entries(part: str | None, entries: list[PartitionOffset]) -> None:
    """Raises Problem. As in MirrorMaker 2, any partition may be reset: what is wrong can be cleaned up."""
    for partition, offset in entries:
        if offset is None:
            continue
        if partition is None:
            raise Problem(400, "Source partitions may not be null")
        for key in _TEXTS[part or SOURCE]:
            _check_text(partition, key)
        if part in _WITH_PARTITION:
            _check_partition(partition)
        _check_offset(partition, offset, only_zero=part != SOURCE)


def wanted_offsets(cluster: str, entries: list[PartitionOffset]) -> dict[TopicPartition, int | None]:
    """By source partition, the last offset that counts as copied; None resets a partition. Of a source connector, after
    `check_entries`. Raises Problem for what names no partition of the cluster, unless it is reset: then there is
    nothing to do."""
    wanted: dict[TopicPartition, int | None] = {}
    for partition, offset in entries:
        if partition is not None and set(partition) == _OF_SOURCE and partition["cluster"] == cluster:
            if isinstance(partition["topic"], str) and _is_integer(partition["partition"], _MOST_PARTITION):
                wanted[partition["topic"], partition["partition"]] = None if offset is None else offset["offset"]
        elif offset is not None:
            meant = f"it has cluster, topic and partition, and cluster is {cluster}"
            raise Problem(400, f"Source partition {_shown(partition)} is not one of this connector: {meant}")
    return wanted


def _check_text(partition: Fields, key: str) -> None:
    if key not in partition:
        raise Problem(400, f"Source partition {_shown(partition)} is missing the '{key}' key, which is required")
    if not isinstance(partition[key], str):
        raise Problem(400, _invalid_value(partition, key, "which must be a string"))


def _check_partition(partition: Fields) -> None:
    key = "partition"
    if key not in partition:
        raise Problem(400, f"Source partition {_shown(partition)} is missing the '{key}' key, which is required")
    if not _is_integer(partition[key], _MOST_PARTITION):
        raise Problem(400, _invalid_value(partition, key, "which must be an integer"))
    if partition[key] < 0:
        raise Problem(400, _invalid_value(partition, key, "which cannot be negative"))


def _check_offset(partition: Fields, offset: Fields, only_zero: bool) -> None:
    of_partition = f"Source offset {_shown(offset)} for source partition {_shown(partition)}"
    if "offset" not in offset:
        raise Problem(400, f"{of_partition} is missing the 'offset' key, which is required")
    value = offset["offset"]
    invalid = f"{of_partition} has an invalid value {_shown(value)} for the 'offset' key"
    if not _is_integer(value, _MOST_OFFSET):
        raise Problem(400, f"{invalid}, which must be an integer")
    if only_zero and value != 0:
        raise Problem(400, f"{invalid}; the only accepted value is 0")
    if value < 0:
        raise Problem(400, f"{invalid}, which cannot be negative")


def _invalid_value(partition: Fields, key: str, must: str) -> str:
    value = _shown(partition[key])
    return f"Source partition {_shown(partition)} has an invalid value {value} for the '{key}' key, {must}"


def _is_integer(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -most - 1 <= value <= most


def _shown(value: object) -> str:
    """As Java prints it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(key)}={_shown(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    # JSON may contain surrogates, which no answer can.
    return "null" if value is None else str(value).encode(errors="replace").decode()


def offsets_body() -> dict[str, Any]:
    """The description of a body."""
    fields = {"type": "object", "nullable": True, "additionalProperties": {}}
    entry = {
        "type": "object",
        "properties": {"partition": fields, "offset": fields},
        "required": ["partition", "offset"],
    }
    schema = {"type": "object", "properties": {"offsets": {"type": "array", "items": entry}}, "required": ["offsets"]}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
