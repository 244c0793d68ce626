"""From settings to a deployment: clusters, the enabled flows, and the notices about the file.

Every supported value is checked first, in the order of the file; then clusters and flows are built.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from heliograph.config.declare import catalogue, locations, supported
from heliograph.config.declare.locations import Scope, flow, top
from heliograph.config.messages import ConfigError, ConfigNotice, ErrorCollector, sorted_notices
from heliograph.config.read.entry import top_key
from heliograph.config.read.formats import read_all
from heliograph.config.read.settings import Settings
from heliograph.config.resolve import review, security
from heliograph.config.resolve.flows import build_cluster, build_flow
from heliograph.model.flow import HEARTBEAT, Cluster, Flow

_ONLY_HEARTBEAT = frozenset({HEARTBEAT})


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a file configures. `flows` are the enabled ones; `heartbeat_only_flows` only write heartbeats, as MM2 does
    for every pair of clusters. `flows_elsewhere` are enabled, but another process runs them. `warnings` are probably
    mistakes; `notes` are about settings that have no effect."""

    file: str
    clusters: dict[str, Cluster]
    flows: tuple[Flow, ...]
    heartbeat_only_flows: tuple[Flow, ...] = ()
    warnings: tuple[ConfigNotice, ...] = ()
    notes: tuple[ConfigNotice, ...] = ()
    webhook: str = field(default="", repr=False)
    flows_elsewhere: tuple[Flow, ...] = ()

    @property
    def all_flows(self) -> tuple[Flow, ...]:
        return *self.flows, *self.heartbeat_only_flows


def load(path: str | os.PathLike[str]) -> Deployment:
    """Reads a file, or a directory of files, in any supported format (see `read/formats.py`). Raises `ConfigError` with
    one line for each error."""
    return load_all([path])


def load_all(paths: Sequence[str | os.PathLike[str]]) -> Deployment:
    """The same for several files that are one deployment together."""
    return assemble(read_all(paths))


def assemble(settings: Settings, *, may_be_idle: bool = False) -> Deployment:
    """`may_be_idle`: it is not an error if no flow is enabled."""
    warnings = list(settings.warnings)
    try:
        warnings += review.warnings(settings)
        _check_values(settings)
        return _assemble(settings, warnings, may_be_idle)
    except ConfigError as error:
        error.warnings = sorted_notices(warnings)
        raise


def _assemble(settings: Settings, warnings: list[ConfigNotice], may_be_idle: bool) -> Deployment:
    errors = ErrorCollector()
    clusters = {
        alias: build_cluster(settings, alias, (alias, alias), locations.OF_CLUSTER, errors)
        for alias in settings.aliases
    }
    enabled: list[Flow] = []
    heartbeat_only: list[Flow] = []
    for pair in permutations(settings.aliases, 2):
        if _is_enabled(settings, *pair):
            enabled.append(build_flow(settings, *pair, errors))
        elif _emits_heartbeats(settings, *pair):
            heartbeat_only.append(replace(build_flow(settings, *pair, errors), parts=_ONLY_HEARTBEAT))
    for built in (*heartbeat_only, *enabled):
        for end in (built.source, built.target):
            clusters[end.alias] = replace(clusters[end.alias], security=end.security)
    errors.raise_collected()
    if not enabled and not may_be_idle:
        raise ConfigError(_no_flow(settings))
    pairs = tuple((flow.source.alias, flow.target.alias) for flow in enabled)
    warnings += dict.fromkeys(security.warnings(settings, pairs))
    return Deployment(
        settings.file,
        clusters,
        tuple(flow for flow in enabled if flow.parts != _ONLY_HEARTBEAT),
        (*(flow for flow in enabled if flow.parts == _ONLY_HEARTBEAT), *heartbeat_only),
        sorted_notices(warnings),
        sorted_notices((*settings.notes, *review.notes(settings, pairs))),
        settings.get(supported.NOTIFY_WEBHOOK, "", ""),
    )


def _check_values(settings: Settings) -> None:
    """Checks every supported value, also of a flow that is not enabled now."""
    errors = ErrorCollector()
    for key, entry in settings.entries.items():
        match = catalogue.find(key.scope, key.name)
        if match is not None and match.supported:
            with errors:
                settings.parse(match.setting, entry)
    errors.raise_collected()


def _is_enabled(settings: Settings, source: str, target: str) -> bool:
    """As in MM2's driver: without a setting of its own a flow has that of the top level, if it emits heartbeats."""
    if settings.find(supported.ENABLED, source, target, (flow(),)) is not None:
        return settings.get(supported.ENABLED, source, target, (flow(),))
    return _emits_heartbeats(settings, source, target) and settings.get(supported.ENABLED, source, target, (top(),))


def _emits_heartbeats(settings: Settings, source: str, target: str) -> bool:
    entry = settings.find(supported.EMIT_HEARTBEATS_ENABLED, source, target)
    return entry is None or entry.reveal().strip().lower() == "true"


def _no_flow(settings: Settings) -> str:
    reason = "No source->target replication flows"
    aliases = settings.aliases
    if not settings.entries[top_key(supported.CLUSTERS.name)].line:
        return f"{settings.file}: {reason}: every connector has 'enabled' set to false"
    if len(aliases) < 2:
        return f"{settings.file}: {reason}: 'clusters' lists {aliases[0]} only, write at least two"
    for key, entry in settings.entries.items():
        if key.scope is Scope.FLOW and catalogue.find(key.scope, key.name) is None:
            right, _ = catalogue.mistake(key.name) or (catalogue.nearest(key.scope, key.name), "")
            if right == supported.ENABLED.name:
                return (
                    f"{settings.file}:{entry.line}: {reason}: "
                    f"'{entry.key}' is not a setting, did you mean '{key.key(right)}'?"
                )
    return f"{settings.file}: {reason}: set '{aliases[0]}->{aliases[1]}.enabled = true' or that of another pair"
