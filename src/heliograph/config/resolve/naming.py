"""How a flow names topics: its aliases and replication policies, and the notices about them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from heliograph.config.declare import catalogue, locations, supported
from heliograph.config.declare.plugins import IDENTITY_POLICY, keeps_heartbeats_name, make_policy, stand_in
from heliograph.config.declare.setting import Setting
from heliograph.config.messages import ConfigNotice, ErrorCollector
from heliograph.config.read.settings import Settings
from heliograph.model.flow import CHECKPOINT, SOURCE, Flow
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy, is_cycle

ClusterPair = tuple[str, str]  # the names of source and target


class _PolicySettings(NamedTuple):
    name: Setting[str | type[object]]
    separator: Setting[str]
    internal_enabled: Setting[bool]


_OF_FLOW = _PolicySettings(
    supported.REPLICATION_POLICY_CLASS,
    supported.REPLICATION_POLICY_SEPARATOR,
    supported.INTERNAL_TOPIC_SEPARATOR_ENABLED,
)
_OF_CHECKPOINTS = _PolicySettings(
    supported.CHECKPOINTS_POLICY_CLASS,
    supported.CHECKPOINTS_POLICY_SEPARATOR,
    supported.CHECKPOINTS_INTERNAL_SEPARATOR,
)


def connector_aliases(settings: Settings, pair: ClusterPair) -> tuple[str, str] | None:
    """What MM2's connectors call source and target, if that is not their names in `clusters`. As in MM2's driver, an
    alias that the file sets wins."""
    source, target = (_alias(settings, pair, side, name) for side, name in zip(("source", "target"), pair, strict=True))
    return None if (source, target) == pair else (source, target)


def _alias(settings: Settings, pair: ClusterPair, side: str, name: str) -> str:
    entry = settings.find(supported.ALIAS, *pair, locations.of_alias(side))
    return name if entry is None else settings.parse(supported.ALIAS, entry)


def policy(settings: Settings, pair: ClusterPair, alias: str, errors: ErrorCollector) -> ReplicationPolicy:
    """That of the source connector. `alias` is what it calls its source."""
    return _policy(settings, pair, alias, _OF_FLOW, errors)


def checkpoint_policy(
    settings: Settings, pair: ClusterPair, alias: str, errors: ErrorCollector
) -> ReplicationPolicy | None:
    """That of the checkpoint connector; None if it is the source connector's."""
    name, separator, internal_enabled = (settings.find(setting, *pair) is not None for setting in _OF_CHECKPOINTS)
    if not (name or separator or internal_enabled):
        return None
    read = _PolicySettings(
        _OF_CHECKPOINTS.name if name else _OF_FLOW.name,
        _OF_CHECKPOINTS.separator if separator else _OF_FLOW.separator,
        _OF_CHECKPOINTS.internal_enabled if internal_enabled else _OF_FLOW.internal_enabled,
    )
    return _policy(settings, pair, alias, read, errors)


def _policy(
    settings: Settings, pair: ClusterPair, alias: str, read: _PolicySettings, errors: ErrorCollector
) -> ReplicationPolicy:
    named, separator = settings.get(read.name, *pair), settings.get(read.separator, *pair)
    internal = None if settings.get(read.internal_enabled, *pair) else "."
    if isinstance(named, type):
        options = {"source_alias": alias, "separator": separator, "internal_separator": internal}
        with errors:
            try:
                return make_policy(named, options)
            except ValueError as reason:
                entry = settings.find(read.name, *pair)
                assert entry is not None, "no default names a user's own class"
                raise settings.error(entry, f"'{entry.value}' {reason}") from None
    if named == IDENTITY_POLICY:
        return IdentityReplicationPolicy(alias, separator, internal)
    return DefaultReplicationPolicy(separator, internal)


def notes(settings: Settings, flows: Iterable[Flow]) -> Iterator[ConfigNotice]:
    """Which built-in policies stand for the Java classes that are named, and where heartbeats differ from MM2's."""
    for flow in flows:
        heartbeats = flow.policy.heartbeats_topic()
        if SOURCE in flow.parts and flow.mixes_heartbeats(heartbeats):
            text = (
                f"{flow.name} does not copy the topic '{heartbeats}': its mirror is the topic that heartbeats of the "
                "flow are written to. MirrorMaker 2 mixes both there"
            )
            yield ConfigNotice(0, "", text, settings.file)
    for key, entry in settings.entries.items():
        match = catalogue.find(key.scope, key.name)
        name = entry.reveal().strip()
        built_in = stand_in(name)
        if built_in is None or match is None or match.setting not in (_OF_FLOW.name, _OF_CHECKPOINTS.name):
            continue
        but = ", but gives heartbeats the source's alias as a prefix" if keeps_heartbeats_name(name) else ""
        text = f"{entry.name}: {built_in} stands for '{name}': it names mirrors the same way{but}"
        yield settings.notice(entry, text)


def warnings(settings: Settings, flows: Sequence[Flow]) -> Iterator[ConfigNotice]:
    """What a flow's names lead to, where that is hardly meant. It is the same with MM2."""
    yield from _growing_names(settings, [flow for flow in flows if SOURCE in flow.parts])
    for flow in flows:
        pair = (flow.source.alias, flow.target.alias)
        target = flow.aliases[1]
        if SOURCE in flow.parts and is_cycle(flow.policy, "x", target):
            text = (
                f"{flow.name} copies nothing: source and target have the same alias '{target}', so the replication "
                "policy takes every topic for one that came from the target: set source.cluster.alias to another one"
            )
            yield _about(settings, supported.ALIAS, pair, text, locations.of_alias("source"))
        if SOURCE in flow.parts and flow.policy == DefaultReplicationPolicy("") and len(target) == 1:
            text = (
                f"{flow.name} does not copy topics with a '{target}' in their name: with an empty separator they are "
                f"taken for topics that came from {target}; write IdentityReplicationPolicy, which keeps names as well"
            )
            yield _about(settings, _OF_FLOW.separator, pair, text)
        mirror, in_checkpoints = flow.mirror_name("x"), flow.name_in_checkpoints("x")
        if CHECKPOINT in flow.parts and mirror != in_checkpoints:
            text = (
                f"{flow.name}: checkpoints call the mirror of a topic 'x' '{in_checkpoints}', but it is '{mirror}': no "
                "group's offsets are synced to it, as with MirrorMaker 2; give the checkpoint connector the "
                "replication.policy settings of the source connector"
            )
            named = (setting for setting in _OF_CHECKPOINTS if settings.find(setting, *pair) is not None)
            yield _about(settings, next(named, _OF_FLOW.name), pair, text)


def _growing_names(settings: Settings, flows: Iterable[Flow]) -> Iterator[ConfigNotice]:
    """Flows in opposite directions that do not recognize each other's mirrors copy them again and again."""
    for flow, back in permutations(flows, 2):
        mirror = flow.mirror_name("x")
        is_back = (flow.source.alias, flow.target.alias) == (back.target.alias, back.source.alias)
        if is_back and mirror != "x" and back.selects(mirror) and flow.selects(back.mirror_name(mirror)):
            text = (
                f"{flow.name} and {back.name} copy each other's mirrors, to ever longer names: {back.name} does not "
                f"recognize '{mirror}' as a topic that came from '{back.aliases[1]}'"
            )
            pair = (flow.source.alias, flow.target.alias)
            yield _about(settings, supported.ALIAS, pair, text, locations.of_alias("source"))


def _about(
    settings: Settings,
    setting: Setting[object],
    pair: ClusterPair,
    text: str,
    read: tuple[locations.SettingLocation, ...] | None = None,
) -> ConfigNotice:
    entry = settings.find(setting, *pair, read)
    if entry is None or not entry.line:
        return ConfigNotice(0, "", text, settings.file)
    return settings.notice(entry, text)
