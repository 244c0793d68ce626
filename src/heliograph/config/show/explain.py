"""Where a value comes from: for each flow or cluster the value, the line that decides, and what it wins over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heliograph.config.declare import catalogue, locations
from heliograph.config.declare.secrets import HIDDEN, is_secret
from heliograph.config.declare.setting import Role, Scope, Setting, SettingLocation, flow, source, target, top
from heliograph.config.messages import ConfigError, at
from heliograph.config.read.document import Settings
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.scopes import SettingKey, nearest_alias
from heliograph.config.resolve.deployment import Deployment

_BY_KIND = {"consumer.": locations.OF_SOURCE, "producer.": locations.OF_WRITING, "admin.": locations.OF_TARGET}

_BY_CLUSTER = {
    "source.cluster.": (flow("source.cluster."), source(), top()),
    "target.cluster.": (flow("target.cluster."), target(), top()),
}


@dataclass(frozen=True, slots=True)
class ExplainedValue:
    """A value as it is written, and where; `written` is empty for a default."""

    value: str
    place: str = ""
    written: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """What counts for a flow or a cluster (`subject`). `value` is None where there is neither value nor default."""

    subject: str
    value: ExplainedValue | None
    overridden: tuple[ExplainedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    key: str
    about: str
    acted: str  # '' if it is acted on, else what is the matter
    places: tuple[str, ...]
    origins: tuple[Origin, ...]


def explain(document: Settings, deployment: Deployment, key: str) -> Explanation:
    """`key` is a setting's name (`topics`), with a client's in front (`consumer.fetch.max.bytes`), or with the flow or
    cluster it is about (`A->B.topics`). Raises `ConfigError` for one that is not known."""
    owner, name = _owner(document, key)
    setting, prefix, local = _setting(name)
    reads = _reads(setting, prefix)
    origins = tuple(
        _origin(document, setting, local, reads, subject, (pair[0], pair[1]))
        for subject, *pair in _subjects(document, deployment, reads, owner)
    )
    if not origins:
        raise ConfigError(f"{key}: nothing that runs is about {owner}")
    acted = "" if setting.supported else setting.ignored_because or "this version does not act on it"
    spelt = tuple(_spelt(place, local) for place in reads)
    return Explanation(prefix + local, setting.about, acted, spelt, origins)


def _owner(document: Settings, key: str) -> tuple[str, str]:
    """The flow or cluster that a key begins with, and the rest; '' if it begins with none."""
    pairs = [f"{one}->{two}" for one in document.aliases for two in document.aliases if one != two]
    for owner in sorted((*pairs, *document.aliases), key=len, reverse=True):
        if key.startswith(f"{owner}.") and (owner in pairs or _known(key[len(owner) + 1 :])):
            return owner, key[len(owner) + 1 :]
    if "->" in key:
        before, _, rest = key.partition("->")
        wrong = before if before not in document.aliases else rest.partition(".")[0]
        meant = nearest_alias(wrong, document.aliases)
        hint = f"; did you mean {meant}?" if meant else ""
        raise ConfigError(f"{key}: {wrong} is not one of the clusters {', '.join(document.aliases)}{hint}")
    return "", key


def _known(name: str) -> bool:
    return any(catalogue.find(scope, name) for scope in Scope) or any(one.name == name for one in catalogue.SETTINGS)


def _setting(name: str) -> tuple[Setting[object], str, str]:
    """The setting, the client that its name begins with, and its name within; for one of a family (`transforms.*`) the
    name as asked for."""
    for scope in (Scope.FLOW, Scope.CLUSTER, Scope.TOP):
        hit = catalogue.find(scope, name)
        if hit is not None:
            prefix = hit.place.prefix
            return hit.setting, prefix, hit.setting.name if hit.old_name else name.removeprefix(prefix)
    for setting in catalogue.SETTINGS:
        if name in (setting.name, *setting.old_names):
            return setting, "", setting.name
    near, reason = catalogue.MISTAKES.get(name, (None, ""))
    near = near or next((found for scope in Scope if (found := catalogue.nearest(scope, name))), None)
    hint = f"did you mean '{near}'?" + (f" ({reason})" if reason else "") if near else "there is no such setting"
    raise ConfigError(f"unknown setting '{name}': {hint}")


def _reads(setting: Setting[object], prefix: str) -> tuple[SettingLocation, ...]:
    """The places that count for the client in question, highest first."""
    for kind, chain in _BY_KIND.items():
        if prefix.endswith(kind) or (kind == "producer." and prefix == "producer.override."):
            chosen = tuple(place for place in setting.where.read if place in chain)
            # A name or timeout of a cluster is read by each of its clients; the place names it for any cluster.
            if locations.OF_CLUSTER[1] in setting.where.read:
                return chain
            return chosen or setting.where.read
    if prefix in _BY_CLUSTER:
        return _BY_CLUSTER[prefix]
    return tuple(place for place in setting.where.read if not place.prefix) or setting.where.read


def _subjects(
    document: Settings, deployment: Deployment, reads: tuple[SettingLocation, ...], owner: str
) -> Iterator[tuple[str, str, str]]:
    if all(place.scope is Scope.TOP for place in reads):
        yield "all", document.aliases[0], document.aliases[-1]
        return
    if any(place.scope is Scope.CLUSTER and place.role is Role.EITHER for place in reads):
        for alias in document.aliases:
            if owner in ("", alias) or alias in owner.split("->"):
                yield alias, alias, alias
        return
    for one in (*deployment.flows, *deployment.heartbeat_only_flows):
        pair = (one.source.alias, one.target.alias)
        if owner in ("", one.name, *pair):
            yield one.name if one in deployment.flows else f"{one.name}, which writes heartbeats only", *pair


def _origin(
    document: Settings,
    setting: Setting[object],
    local: str,
    reads: tuple[SettingLocation, ...],
    subject: str,
    pair: tuple[str, str],
) -> Origin:
    found: list[FileEntry] = []
    for name in (local, *setting.old_names):
        for place in reads:
            address = SettingKey(place.scope, place.owner(*pair), place.prefix + name)
            entry = document.values.entries.get(address)
            if entry is not None:
                found.append(entry)
            found += [one for one in document.replaced if one.key == address.key()]
    shown = [_shown(document, one) for one in dict.fromkeys(found)]
    if shown:
        return Origin(subject, shown[0], tuple(shown[1:]))
    if setting.default is None:
        return Origin(subject, None)
    return Origin(subject, ExplainedValue(HIDDEN if is_secret(setting.name) else setting.default))


def _shown(document: Settings, entry: FileEntry) -> ExplainedValue:
    value = HIDDEN if is_secret(entry.key) else entry.value
    if not entry.line:
        return ExplainedValue(value, document.values.file, f"{entry.key}, which follows from what is in the file")
    return ExplainedValue(value, at(entry.file or document.values.file, entry.line), entry.of_owner(entry.name))


def _spelt(place: SettingLocation, name: str) -> str:
    either = place.scope is Scope.CLUSTER and place.role is Role.EITHER
    return place.key(name, "C", "C") if either else place.key(name)
