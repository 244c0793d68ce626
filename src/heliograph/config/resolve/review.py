"""What an operator should know about a file: names that are no settings, settings where nobody reads them, old names,
and settings that this version does not act on.

Every key of the file is either acted on or mentioned here. Values that make it impossible to run are not: those raise.
"""

from __future__ import annotations

from collections.abc import Iterator

from heliograph.config.declare import catalogue
from heliograph.config.declare.kinds import Patterns
from heliograph.config.declare.locations import DATA_PRODUCER, SOURCE_CONSUMER, TARGET_ADMIN
from heliograph.config.declare.mirroring import BOOTSTRAP_SERVERS, ENABLED
from heliograph.config.declare.setting import Scope, Setting
from heliograph.config.declare.syncing import FILTER_CLASSES
from heliograph.config.messages import ConfigNotice
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.properties import dropped_backslash
from heliograph.config.read.providers import references
from heliograph.config.read.scopes import SettingKey, nearest_alias
from heliograph.config.read.settings import Values


def repeated(file: str, entries: tuple[FileEntry, ...]) -> Iterator[ConfigNotice]:
    """Keys set more than once; the last one counts, as in Java."""
    lines: dict[str, int] = {}
    for entry in entries:
        if entry.key in lines:
            text = f"'{entry.name}' is set again: this value replaces the one in line {lines[entry.key]}"
            yield ConfigNotice(entry.line, entry.key, text, file)
        lines[entry.key] = entry.line


def warnings(values: Values, aliases: tuple[str, ...]) -> Iterator[ConfigNotice]:
    for at, entry in values.entries.items():
        for text in _mistakes(values, aliases, at, entry):
            yield ConfigNotice(entry.line, entry.key, entry.of_owner(text), entry.file or values.file)


def notes(values: Values, aliases: tuple[str, ...], flows: tuple[tuple[str, str], ...]) -> Iterator[ConfigNotice]:
    """Settings without effect that are no mistakes; `flows` are the enabled ones, as pairs of aliases."""
    for at, entry in values.entries.items():
        if not entry.line:
            continue
        text = _note(at, entry, aliases, flows)
        if not text and _for_a_class(values, at):
            text = f"{entry.name} is no setting of Heliograph's: only the classes that the flow names see it"
        if text:
            yield ConfigNotice(entry.line, entry.key, entry.of_owner(text), entry.file or values.file)


def _note(at: SettingKey, entry: FileEntry, aliases: tuple[str, ...], flows: tuple[tuple[str, str], ...]) -> str:
    hit = catalogue.find(at.scope, at.name)
    known = hit or catalogue.elsewhere(at.scope, at.name)
    if known is not None and not known.setting.supported:
        text = f"{entry.name} is known, but this version does not act on it"
        if known.setting.ignored_because:
            text = f"{entry.name} has no meaning here: {known.setting.ignored_because}"
        return text if hit else f"{text} (and MM2 reads it only as {_read_from(known.setting, at, entry, aliases)})"
    if hit is None or not hit.supported:
        return ""
    if at.scope is Scope.FLOW and tuple(at.owner.split("->")) not in flows and hit.setting is not ENABLED:
        return f"{entry.name} has no effect: {at.owner} is not enabled"
    if hit.place in SOURCE_CONSUMER and at.scope is Scope.CLUSTER and at.owner not in {source for source, _ in flows}:
        return f"{entry.name} has no effect: no enabled flow reads from {at.owner}"
    if hit.place in DATA_PRODUCER and at.scope is Scope.CLUSTER and at.owner not in {target for _, target in flows}:
        return f"{entry.name} has no effect: no enabled flow writes to {at.owner}"
    if isinstance(hit.setting.kind, Patterns) and dropped_backslash(entry):
        return f"{entry.name} is read as '{entry.value}': the file format drops single backslashes, write them twice"
    return ""


def _mistakes(values: Values, aliases: tuple[str, ...], at: SettingKey, entry: FileEntry) -> Iterator[str]:
    hit = catalogue.find(at.scope, at.name)
    if hit is None:
        known = catalogue.elsewhere(at.scope, at.name)
        if known is None and not _for_a_class(values, at):
            yield _unknown(at, entry, aliases)
        elif known is None:
            return
        elif known.setting.supported:
            yield _no_effect(known.setting, at, entry, aliases)
        return
    if hit.old_name:
        yield _old_name(values, at, entry, hit)
    if not hit.setting.supported:
        return
    if not hit.supported:
        yield _no_effect(hit.setting, at, entry, aliases)
        return
    if (loses := _beaten(values, at, entry, hit)) is not None:
        yield loses
    for text, provider in references(entry.value):
        if provider not in values.providers:
            yield f"{entry.name}: {text} is left as it is: there is no '{provider}' in config.providers"
        elif values.providers[provider] is None:
            yield f"{entry.name}: {text} is left as it is: this version does not have the class of '{provider}'"
    if hit.setting is BOOTSTRAP_SERVERS and at.scope is Scope.TOP:
        without = [alias for alias in aliases if SettingKey(Scope.CLUSTER, alias, at.name) not in values.entries]
        if len(without) > 1:
            better = f"{without[0]}.{at.name}"
            yield f"'{entry.name}' gives {', '.join(without)} the same address: write '{better}' and so on"
    if isinstance(hit.setting.kind, Patterns) and " #" in entry.value:
        yield f"{entry.name}: the '#' is part of the last pattern: a comment needs a line of its own"


def _for_a_class(values: Values, at: SettingKey) -> bool:
    """Whether a name that is no setting, nor looks like one, may be meant for a filter class of the user's own."""
    if at.scope is not Scope.FLOW or catalogue.elsewhere(at.scope, at.name) or catalogue.find(at.scope, at.name):
        return False
    if not at.name or at.name in catalogue.MISTAKES or catalogue.nearest(at.scope, at.name):
        return False
    source, _, target = at.owner.partition("->")
    named = (values.find(setting, source, target) for setting in FILTER_CLASSES)
    return any(entry is not None and ".Default" not in f".{entry.value.strip()}" for entry in named)


def _no_effect(setting: Setting[object], at: SettingKey, entry: FileEntry, aliases: tuple[str, ...]) -> str:
    return f"'{entry.name}' has no effect: {setting.name} is read from {_read_from(setting, at, entry, aliases)}"


def _read_from(setting: Setting[object], at: SettingKey, entry: FileEntry, aliases: tuple[str, ...]) -> str:
    """The places of a setting, spelt with the aliases of the key in question where it has any."""
    source, target = _pair(at, aliases)
    reads = setting.where.read
    if entry.spelling:
        # A connector's settings are all its own; of a cluster's it has only what no flow has.
        reads = tuple(place for place in reads if place.scope is Scope.FLOW) or reads[:1]
    spelt = (entry.spelt(place.key(setting.name, source, target)) for place in reads)
    keys = [f"'{key}'" for key in dict.fromkeys(spelt)]
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} or {keys[-1]}"


def _pair(at: SettingKey, aliases: tuple[str, ...]) -> tuple[str, str]:
    if at.scope is Scope.FLOW:
        source, _, target = at.owner.partition("->")
        return source, target
    source = at.owner or aliases[0]
    return source, next((alias for alias in aliases if alias != source), "B")


def _unknown(at: SettingKey, entry: FileEntry, aliases: tuple[str, ...]) -> str:
    unknown = f"unknown setting '{entry.name}'"
    if at.scope is Scope.FLOW and not at.name:
        return f"{unknown}: did you mean '{entry.spelt(at.key(ENABLED.name))}'?"
    if at.name in catalogue.MISTAKES:
        right, reason = catalogue.MISTAKES[at.name]
        place = at if catalogue.find(at.scope, right) is not None else SettingKey(Scope.TOP, "", right)
        return f"{unknown}: did you mean '{entry.spelt(place.key(right))}'? ({reason})"
    if at.scope is Scope.TOP and (text := _unknown_alias(entry.key, aliases)):
        return f"{unknown}: {text}"
    near = catalogue.nearest(at.scope, at.name)
    return f"{unknown}: did you mean '{entry.spelt(at.key(near))}'?" if near else f"{unknown}: it is ignored"


def _unknown_alias(key: str, aliases: tuple[str, ...]) -> str:
    """For `Q.bootstrap.servers`, where what follows the first dots is a cluster's setting but Q is no cluster."""
    pieces = key.split(".")
    for length in range(1, len(pieces)):
        alias, name = ".".join(pieces[:length]), ".".join(pieces[length:])
        if catalogue.find(Scope.CLUSTER, name) is None:
            continue
        listed = f"{alias} is not in 'clusters' ({', '.join(aliases)})"
        meant = nearest_alias(alias, aliases)
        return f"{listed}; did you mean '{meant}.{name}'?" if meant else listed
    return ""


def _old_name(values: Values, at: SettingKey, entry: FileEntry, hit: catalogue.SettingMatch) -> str:
    new = hit.setting.name
    for owner, scope in ((at.owner, at.scope), ("", Scope.TOP)):
        winner = values.entries.get(SettingKey(scope, owner, hit.place.prefix + new))
        if winner is not None:
            return (
                f"'{entry.name}' is ignored: it is the old name of '{winner.name}', which is set in line {winner.line}"
            )
    return f"'{entry.name}' is an old name: call it '{entry.spelt(at.key(new))}'"


def _beaten(values: Values, at: SettingKey, entry: FileEntry, hit: catalogue.SettingMatch) -> str | None:
    """`A.consumer.x` wins over `A->B.consumer.x`, which surprises: a flow is narrower than a cluster."""
    if at.scope is not Scope.FLOW:
        return None
    source, _, target = at.owner.partition("->")
    for narrow, cluster, broad in (SOURCE_CONSUMER, TARGET_ADMIN):
        if hit.place == broad and (winner := values.find(hit.setting, source, target, (cluster,))) is not None:
            better = entry.spelt(narrow.key(hit.setting.name, source, target))
            return (
                f"'{entry.name}' loses to '{winner.name}' in line {winner.line}, as with MM2: write '{better}' to win"
            )
    return None
