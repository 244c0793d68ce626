"""The options of `heliograph sandbox` as specs of clusters. Errors name the option."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from heliograph.sandbox import ADMIN, DEFAULT_VERSION, MIRROR, PROPERTIES_HEADER, ClusterSpec, SandboxError

Value = TypeVar("Value")


class BadOption(Exception):
    """An option with a value that cannot be used."""


def cluster_specs(
    clusters: str,
    brokers: Sequence[str],
    ports: Sequence[str],
    versions: Sequence[str],
    settings: Sequence[str],
    heap: int,
    security: Sequence[str] = (),
    needs_acls: bool = False,
) -> dict[str, ClusterSpec]:
    aliases = [alias.strip() for alias in clusters.split(",")]
    for alias in aliases:
        if not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*", alias):
            raise BadOption(f"--clusters: {alias!r} is not a valid alias of a cluster")
    if len(set(aliases)) < len(aliases):
        raise BadOption(f"--clusters: an alias is given twice in {clusters!r}")
    broker_counts = _by_alias("--brokers", brokers, aliases, 1, int)
    versions_by_alias = _by_alias("--version", versions, aliases, DEFAULT_VERSION, str)
    ports_by_alias = _ports(ports, aliases)
    settings_by_alias = _settings(settings, aliases)
    kinds = _by_alias("--security", security, aliases, "", str)
    super_users = (ADMIN,) if needs_acls else (ADMIN, MIRROR)
    specs = {}
    for alias in aliases:
        # Option by option, so that the message names the wrong one.
        _spec("--brokers", brokers=broker_counts[alias])
        _spec("--version", version=versions_by_alias[alias])
        _spec("--heap", heap_mb=heap)
        secured = (kinds[alias],) if kinds[alias] else ()
        _spec("--security", version=versions_by_alias[alias], security=secured)
        specs[alias] = _spec(
            "--port",
            brokers=broker_counts[alias],
            version=versions_by_alias[alias],
            heap_mb=heap,
            ports=tuple(ports_by_alias[alias]),
            settings=settings_by_alias[alias],
            security=secured,
            super_users=super_users,
        )
    return specs


def _spec(option: str, **fields: object) -> ClusterSpec:
    try:
        return ClusterSpec(**fields)  # type: ignore[arg-type]
    except SandboxError as error:
        raise BadOption(f"{option}: {error}") from None


def _by_alias(
    option: str, given: Sequence[str], aliases: Sequence[str], default: Value, read: Callable[[str], Value]
) -> dict[str, Value]:
    """`VALUE` is for all clusters, `ALIAS=VALUE` for one cluster, in any order."""
    for_all, by_alias = default, {}
    for item in given:
        alias, equals, value = item.rpartition("=")
        if equals:
            by_alias[_known(option, alias, aliases)] = _read(option, value, read)
        else:
            for_all = _read(option, value, read)
    return {alias: by_alias.get(alias, for_all) for alias in aliases}


def _ports(given: Sequence[str], aliases: Sequence[str]) -> dict[str, list[int]]:
    ports: dict[str, list[int]] = {alias: [] for alias in aliases}
    for item in given:
        alias, equals, value = item.rpartition("=")
        if not equals:
            raise BadOption(f"--port: {item!r} is not of the form ALIAS=PORT, such as {aliases[0]}=9092")
        ports[_known("--port", alias, aliases)].append(_read("--port", value, int))
    all_ports = [port for ports_of_one in ports.values() for port in ports_of_one]
    if len(set(all_ports)) < len(all_ports):
        raise BadOption("--port: the same port is given twice")
    return ports


def _settings(given: Sequence[str], aliases: Sequence[str]) -> dict[str, dict[str, str]]:
    settings: dict[str, dict[str, str]] = {alias: {} for alias in aliases}
    for item in given:
        key, equals, value = item.partition("=")
        alias, colon, key_alone = key.rpartition(":")
        if not equals or not key_alone.strip():
            raise BadOption(f"--set: {item!r} is not of the form KEY=VALUE or ALIAS:KEY=VALUE")
        for chosen in [_known("--set", alias, aliases)] if colon else aliases:
            settings[chosen][key_alone.strip()] = value.strip()
    return settings


def _known(option: str, alias: str, aliases: Sequence[str]) -> str:
    if alias not in aliases:
        raise BadOption(f"{option}: there is no cluster {alias!r}; the clusters are {', '.join(aliases)}")
    return alias


def _read(option: str, value: str, read: Callable[[str], Value]) -> Value:
    try:
        return read(value)
    except ValueError:
        raise BadOption(f"{option}: {value!r} is not a number") from None


def check_writable(write: Path | None, clusters: int) -> None:
    """A file written by a sandbox is overwritten; any other file is not."""
    if write is None:
        return
    if clusters < 2:
        raise BadOption("--write: mirroring needs two clusters, see --clusters")
    if not write.absolute().parent.is_dir():
        raise BadOption(f"--write: {write.parent} is not a folder")
    if write.is_dir() or (write.exists() and not write.read_text(errors="replace").startswith(PROPERTIES_HEADER)):
        raise BadOption(f"--write: {write} exists and was not written by a sandbox")
