"""Short hashes of the settings of flows: members compare them to see whether they run the same file.

Left out is what may differ from machine to machine: addresses, logins, paths, timeouts of connections, the rack. A
hash cannot be turned back into its setting.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from heliograph.model.flow import Cluster, Flow

_LENGTH = 10
_OF_ONE_MACHINE = frozenset({"source", "target", "reader", "writer", "rack"})


def fingerprint(flows: Iterable[Flow]) -> dict[str, str]:
    """A hash for each field of a flow, over all flows; and one for their names."""
    ordered = sorted(flows, key=lambda flow: flow.name)
    fields = [field.name for field in dataclasses.fields(Flow) if field.name not in _OF_ONE_MACHINE]
    hashes = {"flows": _hash([flow.name for flow in ordered])}
    for name in fields:
        hashes[name] = _hash([_plain(getattr(flow, name)) for flow in ordered])
    return hashes


def differences(hashes: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """The fields that differ. One that only one side knows, being of another version, does not count."""
    return sorted(name for name in hashes.keys() & others.keys() if hashes[name] != others[name])


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_LENGTH]


def _plain(value: Any) -> Any:
    """As JSON. Of an object of a user's own class only the class and its public fields count."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Cluster):
        return value.alias
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(entry), sort_keys=True) for entry in value)
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        fields = dict(getattr(value, "__dict__", {}))
    shown = {name: _plain(entry) for name, entry in fields.items() if name not in _OF_ONE_MACHINE and name[:1] != "_"}
    return [type(value).__qualname__, shown]
