"""Notices about the settings of a file: unknown names, settings that are not read where they are written, old names,
and settings that this version does not support.

Every key of the file is either supported or mentioned here. Values that make it impossible to run are errors instead.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

from heliograph.config.declare import catalogue, locations
from heliograph.config.declare.catalogue import SettingMatch
from heliograph.config.declare.kinds import PATTERNS
from heliograph.config.declare.locations import DATA_PRODUCER, SECURITY, SOURCE_CONSUMER, TARGET_ADMIN, Scope, flow, top
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import BOOTSTRAP_SERVERS, ENABLED, FILTER_CLASSES, SUPPORTED
from heliograph.config.messages import ConfigNotice, Consequence
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.mm2_file import nearest_alias, split_at_setting
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.misplaced import (
    client_address,
    is_first,
    is_lost,
    is_of_other_client,
    is_set_elsewhere,
    misplaced,
    no_effect,
    read_from,
)

_OF_CLUSTERS = (
    (("consumer.", "source.cluster."), "source.consumer", locations.source),
    (("admin.", "target.cluster."), "target.admin", locations.target),
)
_PLACEHOLDER = re.compile(r"\$\{\w+\}|\{\{.*?\}\}")


def warnings(settings: Settings) -> Iterator[ConfigNotice]:
    explained = {(note.file, note.line) for note in settings.notes if note.consequence is Consequence.ACTION}
    for key, entry in _entries(settings):
        for text in _mistakes(settings, key, entry):
            yield settings.notice(entry, text)
        if (entry.file or settings.file, entry.line) not in explained:
            for text in _unresolved(settings, key, entry):
                yield settings.notice(entry, text)


def notes(settings: Settings, flows: tuple[tuple[str, str], ...]) -> Iterator[ConfigNotice]:
    """Settings without effect that are not mistakes; `flows` are the enabled ones, as pairs of aliases."""
    for key, entry in _entries(settings):
        note = _note(settings, key, entry, flows) if entry.line else None
        if note is not None:
            text, consequence = note
            yield replace(settings.notice(entry, text), consequence=consequence)


def _entries(settings: Settings) -> Iterator[tuple[SettingKey, FileEntry]]:
    """All entries of the file: also those of connectors that their flow does not use, unless their names are right."""
    yield from settings.entries.items()
    if settings.is_of_connectors:
        owners = ["->".join(pair) for pair in permutations(settings.aliases, 2)]
        for owner, entry in product(owners, settings.replaced):
            if entry.key.startswith(f"{owner}."):
                key = SettingKey(Scope.FLOW, owner, entry.key[len(owner) + 1 :])
                match = catalogue.find(key.scope, key.name)
                if match is None or not match.supported:
                    yield key, entry


def _note(
    settings: Settings, key: SettingKey, entry: FileEntry, flows: tuple[tuple[str, str], ...]
) -> tuple[str, Consequence] | None:
    match = catalogue.find(key.scope, key.name)
    setting = match.setting if match is not None else misplaced(key)
    if setting is not None and not setting.supported:
        return _ignored(settings, setting, key, entry, is_read=match is not None)
    if match is not None and match.supported:
        return _without_flow(settings, key, entry, match, flows) or _dropped_backslash(entry, match.setting)
    if (address := client_address(settings, key, entry)) is not None:
        differs, text = address
        return None if differs else (text, Consequence.NONE)
    if setting is not None:
        if _is_mistake(settings, setting, key, entry):
            return None
        is_lost_here = is_lost(settings, setting, key, entry)
        consequence = Consequence.NO_EFFECT if is_lost_here else Consequence.NONE
        return no_effect(settings, setting, key, entry), consequence
    if truth := catalogue.not_a_setting(key.name):
        return f"{entry.name} is ignored: {truth}", Consequence.NO_EFFECT
    if _is_corrected(settings, key):
        return _unknown(key, entry, settings.aliases), Consequence.NO_EFFECT
    if _may_be_for_own_class(settings, key):
        text = f"{entry.name} is not a setting of Heliograph: only the flow's own classes get it"
        return text, Consequence.NONE
    return None


def _ignored(
    settings: Settings, setting: Setting[object], key: SettingKey, entry: FileEntry, is_read: bool
) -> tuple[str, Consequence]:
    text = f"{entry.name} is known, but this version does not support it"
    if setting.ignored_because:
        text = f"{entry.name} is ignored: {setting.ignored_because}"
    if not is_read:
        text = f"{text} (and MM2 reads it only as {read_from(settings, setting, key, entry)})"
    is_noticed = setting.is_missed and not _is_default(setting, entry)
    return text, Consequence.NO_EFFECT if is_noticed else Consequence.NONE


def _is_default(setting: Setting[object], entry: FileEntry) -> bool:
    """Whether the value is MM2's default. A class may be written without its package."""
    default = (setting.default or "").lower()
    value = entry.reveal().strip().lower()
    return setting.default is not None and value in (default, default.rpartition(".")[2])


def _without_flow(
    settings: Settings, key: SettingKey, entry: FileEntry, match: SettingMatch, flows: tuple[tuple[str, str], ...]
) -> tuple[str, Consequence] | None:
    if key.scope is Scope.FLOW and tuple(key.owner.split("->")) not in flows and match.setting is not ENABLED:
        is_meant = SettingKey(Scope.FLOW, key.owner, ENABLED.name) in settings.entries
        consequence = Consequence.NONE if is_meant else Consequence.NO_EFFECT
        return f"{entry.name} has no effect: {key.owner} is not enabled", consequence
    if key.scope is Scope.CLUSTER:
        if match.location in SOURCE_CONSUMER and key.owner not in {source for source, _ in flows}:
            return f"{entry.name} has no effect: no enabled flow reads from {key.owner}", Consequence.NO_EFFECT
        if match.location in DATA_PRODUCER and key.owner not in {target for _, target in flows}:
            return f"{entry.name} has no effect: no enabled flow writes to {key.owner}", Consequence.NO_EFFECT
    return None


def _dropped_backslash(entry: FileEntry, setting: Setting[object]) -> tuple[str, Consequence] | None:
    if setting.kind is not PATTERNS or not entry.drops_backslash:
        return None
    text = f"{entry.name} is read as '{entry.value}': the file format drops single backslashes, write them twice"
    return text, Consequence.ACTION


def _is_mistake(settings: Settings, setting: Setting[object], key: SettingKey, entry: FileEntry) -> bool:
    """Whether the place of a supported setting is probably a mistake: its value is lost, and not set where it should
    be."""
    if not is_of_other_client(key):
        return is_lost(settings, setting, key, entry)
    return (
        is_first(settings, setting, key)
        and is_lost(settings, setting, key, entry)
        and not is_set_elsewhere(settings, setting, key)
    )


def _is_corrected(settings: Settings, key: SettingKey) -> bool:
    """Whether the file has the right name too."""
    right = SUPPORTED.get((catalogue.mistake(key.name) or ("", ""))[0])
    return right is not None and is_set_elsewhere(settings, right, key)


def _mistakes(settings: Settings, key: SettingKey, entry: FileEntry) -> Iterator[str]:
    match = catalogue.find(key.scope, key.name)
    setting = match.setting if match is not None else misplaced(key)
    if match is not None and match.old_name:
        yield _old_name(settings, key, entry, match)
    if setting is None:
        is_noted = catalogue.not_a_setting(key.name) or _is_corrected(settings, key)
        if not is_noted and not _may_be_for_own_class(settings, key):
            yield _unknown(key, entry, settings.aliases)
    elif setting.supported and match is not None and match.supported:
        yield from _mistakes_of_value(settings, key, entry, match)
    elif (address := client_address(settings, key, entry)) is not None:
        differs, text = address
        if differs:
            yield text
    elif setting.supported and _is_mistake(settings, setting, key, entry):
        yield no_effect(settings, setting, key, entry)


def _mistakes_of_value(settings: Settings, key: SettingKey, entry: FileEntry, match: SettingMatch) -> Iterator[str]:
    yield from _overridden(settings, key, entry, match)
    if match.setting.where is SECURITY and (placeholder := _PLACEHOLDER.search(entry.reveal())) is not None:
        kind = "${NAME}" if placeholder[0].startswith("$") else "{{ name }}"
        yield (
            f"{entry.name} has a {kind} that is taken as it is: replace it before the file is read, or write "
            "${env:NAME} and config.providers = env"
        )
    if entry.is_continued:
        yield f"{entry.name} is read on in the next line, unlike by MM2: end the line with a backslash"
    if match.setting is BOOTSTRAP_SERVERS and key.scope is Scope.TOP:
        without = [
            alias for alias in settings.aliases if SettingKey(Scope.CLUSTER, alias, key.name) not in settings.entries
        ]
        if len(without) > 1:
            better = f"{without[0]}.{key.name}"
            yield f"'{entry.name}' gives {', '.join(without)} the same address: write '{better}' and so on"
    if match.setting.kind is PATTERNS and " #" in entry.reveal():
        yield f"{entry.name}: the '#' is part of the last pattern: a comment needs a line of its own"


def _unresolved(settings: Settings, key: SettingKey, entry: FileEntry) -> Iterator[str]:
    match = catalogue.find(key.scope, key.name)
    if match is not None and match.supported and _reports_references(settings, match.setting):
        yield from (f"{entry.name}: {text}" for text in settings.unresolved(entry))


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
