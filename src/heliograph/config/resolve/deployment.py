"""From settings to a deployment: clusters, the enabled flows, and the notices about the file.

Every supported value is checked first, in the order of the file; then clusters and flows are built.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from heliograph.config.declare import catalogue, locations, supported
from heliograph.config.declare.locations import Scope, flow, top
from heliograph.config.messages import ConfigError, ConfigNotice, ErrorCollector, sorted_notices
from heliograph.config.read.entry import top_key
from heliograph.config.read.formats import read_all
from heliograph.config.read.settings import Settings
from heliograph.config.resolve import naming, review, security, transforms
from heliograph.config.resolve.flows import build_cluster, build_flow
from heliograph.model.flow import HEARTBEAT, SOURCE, Cluster, Flow
from heliograph.model.membership import MembershipSettings

_ONLY_HEARTBEAT = frozenset({HEARTBEAT})


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a file configures. `flows` are the enabled ones; `heartbeat_only_flows` only write heartbeats, as MM2 does
    for every pair of clusters. `flows_elsewhere` are enabled, but another process runs them. `warnings` are probably
    mistakes; `notes` are about settings that have no effect. `states` are those of connectors that are not to run now,
    by source, target and part; `stopped` are about resources of which nothing is to run.
    `membership` says by target how processes share the flows; it is empty if they do not."""

    file: str
    clusters: dict[str, Cluster]
    flows: tuple[Flow, ...]
    heartbeat_only_flows: tuple[Flow, ...] = ()
    warnings: tuple[ConfigNotice, ...] = ()
    notes: tuple[ConfigNotice, ...] = ()
    webhook: str = field(default="", repr=False)
    states: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    stopped: tuple[ConfigNotice, ...] = ()
    flows_elsewhere: tuple[Flow, ...] = ()
    membership: Mapping[str, MembershipSettings] = field(default_factory=dict)

    @property
    def all_flows(self) -> tuple[Flow, ...]:
        return *self.flows, *self.heartbeat_only_flows

    @property
    def running_flows(self) -> tuple[Flow, ...]:
        """All flows, with the parts that are to run now, if there are any."""
        flows = (replace(flow, parts=flow.parts - self.paused_parts(flow)) for flow in self.all_flows)
        return tuple(flow for flow in flows if flow.parts)

    def paused_parts(self, flow: Flow) -> frozenset[str]:
        return frozenset(part for part in flow.parts if (flow.source.alias, flow.target.alias, part) in self.states)


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
        errors = ErrorCollector(settings.errors)
        _check_values(settings, errors)
        return _assemble(settings, warnings, may_be_idle, errors)
    except ConfigError as error:
        # A reference that is not resolved is a warning too, where the value is used as it is.
        error.warnings = sorted_notices(warning for warning in warnings if str(warning) not in error.errors)
        raise


def _assemble(
    settings: Settings, warnings: list[ConfigNotice], may_be_idle: bool, errors: ErrorCollector
) -> Deployment:
    """`errors` are those that were found before: they are raised together with those of clusters and flows."""
    clusters: dict[str, Cluster] = {}
    enabled: list[Flow] = []
    heartbeat_only: list[Flow] = []
    for alias in settings.aliases:
        with errors:
            clusters[alias] = build_cluster(settings, alias, (alias, alias), locations.OF_CLUSTER, errors)
    for pair in permutations(settings.aliases, 2):
        with errors:
            if _is_enabled(settings, *pair):
                enabled.append(build_flow(settings, *pair, errors))
            elif _emits_heartbeats(settings, *pair):
                heartbeat_only.append(replace(build_flow(settings, *pair, errors), parts=_ONLY_HEARTBEAT))
    for built in enabled:
        with errors:
            if SOURCE in built.parts:
                warnings += transforms.check(settings, built.source.alias, built.target.alias)
    errors.raise_collected()
    for built in (*heartbeat_only, *enabled):
        for end in (built.source, built.target):
            clusters[end.alias] = replace(clusters[end.alias], security=end.security)
    if not enabled and not may_be_idle:
        raise ConfigError(_no_flow(settings))
    pairs = tuple((flow.source.alias, flow.target.alias) for flow in enabled)
    warnings += dict.fromkeys((*security.warnings(settings, pairs), *naming.warnings(settings, enabled)))
    return Deployment(
        settings.file,
        clusters,
        tuple(flow for flow in enabled if flow.parts != _ONLY_HEARTBEAT),
        (*(flow for flow in enabled if flow.parts == _ONLY_HEARTBEAT), *heartbeat_only),
        sorted_notices(dict.fromkeys(warnings)),
        sorted_notices((*settings.notes, *naming.notes(settings, enabled), *review.notes(settings, pairs))),
        settings.get(supported.NOTIFY_WEBHOOK, "", ""),
        settings.states,
        settings.stopped,
        membership=_memberships(settings),
    )


def _memberships(settings: Settings) -> dict[str, MembershipSettings]:
    if settings.get(supported.MEMBERSHIP, "", "") == supported.OFF:
        return {}
    return {alias: _membership(settings, alias) for alias in settings.aliases}


def _membership(settings: Settings, target: str) -> MembershipSettings:
    """Named after the group of MM2's workers, if that has a name of its own, else after all clusters; and after the
    target, as two aliases may be one cluster."""
    named = settings.find(supported.GROUP_ID, "", target)
    group = settings.parse(supported.GROUP_ID, named) if named is not None else "-".join(sorted(settings.aliases))
    session_timeout = settings.get(supported.SESSION_TIMEOUT, "", target) / 1000
    return MembershipSettings(
        f"heliograph.{group}.{target}",
        session_timeout,
        min(settings.get(supported.HEARTBEAT_INTERVAL, "", target) / 1000, session_timeout / 3),
        settings.get(supported.REBALANCE_TIMEOUT, "", target) / 1000,
        settings.get(supported.REBALANCE_DELAY, "", target) / 1000,
    )


def _check_values(settings: Settings, errors: ErrorCollector) -> None:
    """Checks every supported value, also of a flow that is not enabled now."""
    for key, entry in settings.entries.items():
        match = catalogue.find(key.scope, key.name)
        if match is not None and match.supported:
            if match.setting is supported.BOOTSTRAP_SERVERS and settings.is_known_elsewhere(entry):
                continue
            with errors:
                settings.parse(match.setting, entry)


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
