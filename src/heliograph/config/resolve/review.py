"""Notices about the settings of a file: unknown names, settings that are not read where they are written, old names,
and settings that this version does not support.

Every key of the file is either supported or mentioned here. Values that make it impossible to run are errors instead.
"""

import re
from collections.abc import Iterator

from heliograph.config.declare import catalogue, locations
from heliograph.config.declare.catalogue import SettingMatch
from heliograph.config.declare.kinds import PATTERNS
from heliograph.config.declare.locations import DATA_PRODUCER, SECURITY, SOURCE_CONSUMER, TARGET_ADMIN, Scope, flow, top
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import BOOTSTRAP_SERVERS, ENABLED, FILTER_CLASSES
from heliograph.config.messages import ConfigNotice
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.mm2_file import nearest_alias, split_at_setting
from heliograph.config.read.settings import Settings

_OF_CLUSTERS = (
    (("consumer.", "source.cluster."), "source.consumer", locations.source),
    (("admin.", "target.cluster."), "target.admin", locations.target),
)
_PLACEHOLDER = re.compile(r"\$\{\w+\}")


def warnings(settings: Settings) -> Iterator[ConfigNotice]:
    for key, entry in settings.entries.items():
        for text in _mistakes(settings, key, entry):
            yield settings.notice(entry, text)


def notes(settings: Settings, flows: tuple[tuple[str, str], ...]) -> Iterator[ConfigNotice]:
    """Settings without effect that are not mistakes; `flows` are the enabled ones, as pairs of aliases."""
    for key, entry in settings.entries.items():
        if not entry.line:
            continue
        text = _note(settings, key, entry, flows)
        if not text and _may_be_for_own_class(settings, key):
            text = f"{entry.name} is not a setting of Heliograph: only the flow's own classes get it"
        if text:
            yield settings.notice(entry, text)


def _note(settings: Settings, key: SettingKey, entry: FileEntry, flows: tuple[tuple[str, str], ...]) -> str:
    match = catalogue.find(key.scope, key.name)
    known = match or catalogue.find_in_other_scope(key.scope, key.name)
    if known is not None and not known.setting.supported:
        text = f"{entry.name} is known, but this version does not support it"
        if known.setting.ignored_because:
            text = f"{entry.name} is ignored: {known.setting.ignored_because}"
        return text if match else f"{text} (and MM2 reads it only as {_read_from(settings, known.setting, key, entry)})"
    if match is None or not match.supported:
        return ""
    if key.scope is Scope.FLOW and tuple(key.owner.split("->")) not in flows and match.setting is not ENABLED:
        return f"{entry.name} has no effect: {key.owner} is not enabled"
    if key.scope is Scope.CLUSTER:
        if match.location in SOURCE_CONSUMER and key.owner not in {source for source, _ in flows}:
            return f"{entry.name} has no effect: no enabled flow reads from {key.owner}"
        if match.location in DATA_PRODUCER and key.owner not in {target for _, target in flows}:
            return f"{entry.name} has no effect: no enabled flow writes to {key.owner}"
    if match.setting.kind is PATTERNS and entry.drops_backslash:
        return f"{entry.name} is read as '{entry.value}': the file format drops single backslashes, write them twice"
    return ""


def _mistakes(settings: Settings, key: SettingKey, entry: FileEntry) -> Iterator[str]:
    match = catalogue.find(key.scope, key.name)
    if match is None:
        known = catalogue.find_in_other_scope(key.scope, key.name)
        if known is None and not _may_be_for_own_class(settings, key):
            yield _unknown(key, entry, settings.aliases)
        elif known is not None and known.setting.supported:
            yield _no_effect(settings, known.setting, key, entry)
        return
    if match.old_name:
        yield _old_name(settings, key, entry, match)
    if not match.setting.supported:
        return
    if not match.supported:
        yield _no_effect(settings, match.setting, key, entry)
        return
    yield from _overridden(settings, key, entry, match)
    if match.setting.where is SECURITY and _PLACEHOLDER.search(entry.reveal()):
        yield (
            f"{entry.name} has a ${{NAME}} that is taken as it is: replace it before the file is read, or write "
            "${env:NAME} and config.providers = env"
        )
    if entry.is_continued:
        yield f"{entry.name} is read on in the next line, unlike by MM2: end the line with a backslash"
    if _reports_references(settings, match.setting):
        yield from (f"{entry.name}: {text}" for text in settings.unresolved(entry))
    if match.setting is BOOTSTRAP_SERVERS and key.scope is Scope.TOP:
        without = [
            alias for alias in settings.aliases if SettingKey(Scope.CLUSTER, alias, key.name) not in settings.entries
        ]
        if len(without) > 1:
            better = f"{without[0]}.{key.name}"
            yield f"'{entry.name}' gives {', '.join(without)} the same address: write '{better}' and so on"
    if match.setting.kind is PATTERNS and " #" in entry.reveal():
        yield f"{entry.name}: the '#' is part of the last pattern: a comment needs a line of its own"


def _reports_references(settings: Settings, setting: Setting[object]) -> bool:
    """Those in settings of security that are used are errors, unless nothing is to run."""
    return settings.may_lack_secrets or setting.where is not SECURITY


def _may_be_for_own_class(settings: Settings, key: SettingKey) -> bool:
    """Whether a name that is not a setting, nor looks like one, may be for a filter class of the user's own."""
    if key.scope is not Scope.FLOW or any(catalogue.find(scope, key.name) for scope in Scope):
        return False
    if not key.name or catalogue.mistake(key.name) or catalogue.nearest(key.scope, key.name):
        return False
    source, _, target = key.owner.partition("->")
    named = (settings.find(setting, source, target) for setting in FILTER_CLASSES)
    return any(entry is not None and ".Default" not in f".{entry.reveal().strip()}" for entry in named)


def _no_effect(settings: Settings, setting: Setting[object], key: SettingKey, entry: FileEntry) -> str:
    return f"'{entry.name}' has no effect: {setting.name} is read from {_read_from(settings, setting, key, entry)}"


def _read_from(settings: Settings, setting: Setting[object], key: SettingKey, entry: FileEntry) -> str:
    """The locations of a setting, written with the aliases of the key in question if it has any."""
    source, target = _pair(key, settings.aliases)
    locations = setting.where.read
    if entry.spelling:
        # All settings of a connector are those of a flow; those of a cluster only if no flow has them.
        locations = tuple(location for location in locations if location.scope is Scope.FLOW) or locations[:1]
    spelt_keys = (entry.spelt(location.key(setting.name, source, target)) for location in locations)
    keys = [f"'{spelt_key}'" for spelt_key in dict.fromkeys(spelt_keys)]
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} or {keys[-1]}"


def _pair(key: SettingKey, aliases: tuple[str, ...]) -> tuple[str, str]:
    if key.scope is Scope.FLOW:
        source, _, target = key.owner.partition("->")
        return source, target
    source = key.owner or aliases[0]
    return source, next((alias for alias in aliases if alias != source), "B")


def _unknown(key: SettingKey, entry: FileEntry, aliases: tuple[str, ...]) -> str:
    unknown = f"unknown setting '{entry.name}'"
    if key.scope is Scope.FLOW and not key.name:
        return f"{unknown}: did you mean '{entry.spelt(key.key(ENABLED.name))}'?"
    if (mistake := catalogue.mistake(key.name)) is not None:
        right, reason = mistake
        better = key if catalogue.find(key.scope, right) is not None else top_key(right)
        return f"{unknown}: did you mean '{entry.spelt(better.key(right))}'? ({reason})"
    if key.scope is Scope.TOP and (text := _unknown_alias(entry.key, aliases)):
        return f"{unknown}: {text}"
    near = catalogue.nearest(key.scope, key.name)
    return f"{unknown}: did you mean '{entry.spelt(key.key(near))}'?" if near else f"{unknown}: it is ignored"


def _unknown_alias(key: str, aliases: tuple[str, ...]) -> str:
    """For `Q.bootstrap.servers`, where a cluster's setting follows the first dots but Q is not a cluster."""
    parts = split_at_setting(Scope.CLUSTER, key)
    if parts is None:
        return ""
    alias, name = parts
    listed = f"{alias} is not in 'clusters' ({', '.join(aliases)})"
    meant = nearest_alias(alias, aliases)
    return f"{listed}; did you mean '{meant}.{name}'?" if meant else listed


def _old_name(settings: Settings, key: SettingKey, entry: FileEntry, match: SettingMatch) -> str:
    new = match.setting.name
    for owner, scope in ((key.owner, key.scope), ("", Scope.TOP)):
        winner = settings.entries.get(SettingKey(scope, owner, match.location.prefix + new))
        if winner is not None:
            return (
                f"'{entry.name}' is ignored: it is the old name of '{winner.name}', which is set in line {winner.line}"
            )
    return f"'{entry.name}' is an old name: write '{entry.spelt(key.key(new))}'"


def _overridden(settings: Settings, key: SettingKey, entry: FileEntry, match: SettingMatch) -> Iterator[str]:
    """`A.consumer.x` wins over `A->B.consumer.x`, which surprises: a flow is narrower than a cluster."""
    if key.scope is not Scope.FLOW:
        return
    source, _, target = key.owner.partition("->")
    for narrow, cluster, broad in (SOURCE_CONSUMER, TARGET_ADMIN):
        winner = settings.find(match.setting, source, target, (cluster,)) if match.location == broad else None
        if winner is not None:
            yield _loses(entry, winner, narrow.key(match.setting.name, source, target))
    if match.setting.where is not SECURITY or settings.is_of_connectors:
        return
    # MM2's driver repeats a cluster's security, and that of the top level, for each client of the cluster.
    for prefixes, role, at in _OF_CLUSTERS:
        winner = settings.find(match.setting, source, target, (at(), top()))
        if match.location.prefix in prefixes and winner is not None:
            yield _loses(entry, winner, flow(f"{role}.").key(match.setting.name, source, target))


def _loses(entry: FileEntry, winner: FileEntry, better: str) -> str:
    return (
        f"'{entry.name}' loses to '{winner.name}' in line {winner.line}, as with MM2: write '{entry.spelt(better)}' "
        "to win"
    )
