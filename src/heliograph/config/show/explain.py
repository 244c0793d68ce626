"""Where a value comes from: for each flow or cluster the value, its line, and the values that it overrides."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations

from heliograph.config.declare import catalogue, locations
from heliograph.config.declare.locations import Role, Scope, SettingLocation
from heliograph.config.declare.secrets import shown
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import CLUSTERS
from heliograph.config.messages import ConfigError
from heliograph.config.read.entry import FileEntry, SettingKey, keys_of, top_key
from heliograph.config.read.mm2_file import nearest_alias
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.deployment import Deployment
from heliograph.config.resolve.security import SOURCE_ADMIN, SOURCE_CONSUMER, TARGET_ADMIN, TARGET_PRODUCER

_BY_ROLE = {
    SOURCE_CONSUMER: locations.OF_READING,
    SOURCE_ADMIN: locations.OF_SOURCE,
    TARGET_ADMIN: locations.OF_TARGET,
    TARGET_PRODUCER: locations.OF_WRITING,
}

_BY_CLUSTER = {
    "source.cluster.": (locations.flow("source.cluster."), locations.source(), locations.top()),
    "target.cluster.": (locations.flow("target.cluster."), locations.target(), locations.top()),
}


@dataclass(frozen=True, slots=True)
class ExplainedValue:
    """A value as it is written, and where; `written` is empty for a default. Names of fields are those of `--json`."""

    value: str
    place: str = ""
    written: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """The value for a flow or a cluster (`subject`), None if there is neither value nor default."""

    subject: str
    value: ExplainedValue | None
    overridden: tuple[ExplainedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    key: str
    about: str
    acted: str  # '' if it is supported, else why it is ignored
    places: tuple[str, ...]
    origins: tuple[Origin, ...]


def explain(settings: Settings, deployment: Deployment, key: str) -> Explanation:
    """`key` is a setting's name (`topics`), with a client in front (`consumer.fetch.max.bytes`), or with a flow or
    cluster (`A->B.topics`). Raises `ConfigError` if it is unknown."""
    owner, name = _owner(settings, key)
    setting, prefix, local = _setting(name)
    reads = _reads(setting, prefix, settings.is_of_connectors)
    origins = tuple(
        _origin(settings, setting, subject, keys_of((local, *setting.old_names), reads, source, target))
        for subject, source, target in _subjects(settings, deployment, reads, owner)
    )
    if setting.where is locations.ALIAS:
        origins = tuple(_or_name(settings, origin, prefix) for origin in origins)
    if not origins:
        raise ConfigError(f"{key}: {owner} does not run")
    acted = "" if setting.supported else setting.ignored_because or "this version does not support it"
    examples = tuple(location.example(local) for location in reads)
    return Explanation(prefix + local, catalogue.about(setting), acted, examples, origins)


def _owner(settings: Settings, key: str) -> tuple[str, str]:
    """The flow or cluster that a key begins with, and the rest; '' if it begins with none."""
    pairs = ["->".join(pair) for pair in permutations(settings.aliases, 2)]
    for owner in sorted((*pairs, *settings.aliases), key=len, reverse=True):
        if key.startswith(f"{owner}.") and (owner in pairs or _known(key[len(owner) + 1 :])):
            return owner, key[len(owner) + 1 :]
    if "->" in key:
        before, _, rest = key.partition("->")
        wrong = before if before not in settings.aliases else rest.partition(".")[0]
        meant = nearest_alias(wrong, settings.aliases)
        hint = f"; did you mean {meant}?" if meant else ""
        raise ConfigError(f"{key}: {wrong} is not one of the clusters {', '.join(settings.aliases)}{hint}")
    return "", key


def _known(name: str) -> bool:
    return any(catalogue.find(scope, name) for scope in Scope) or any(
        setting.name == name for setting in catalogue.settings()
    )


def _setting(name: str) -> tuple[Setting[object], str, str]:
    """The setting, the client that its name begins with, and the rest of the name; for one of a family (`transforms.*`)
    the name as given."""
    for scope in (Scope.FLOW, Scope.CLUSTER, Scope.TOP):
        match = catalogue.find(scope, name)
        if match is not None:
            prefix = match.location.prefix
            return match.setting, prefix, match.setting.name if match.old_name else name.removeprefix(prefix)
    for setting in catalogue.settings():
        if name in setting.names:
            return setting, "", setting.name
    near, reason = catalogue.mistake(name) or (None, "")
    near = near or next((similar for scope in Scope if (similar := catalogue.nearest(scope, name))), None)
    none = catalogue.not_a_setting(name) or "there is no such setting"
    hint = f"did you mean '{near}'?" + (f" ({reason})" if reason else "") if near else none
    raise ConfigError(f"unknown setting '{name}': {hint}")


def _role(prefix: str) -> str:
    """The client that a prefix is for, as `locations.of_security` names it; '' if it is for none."""
    match prefix.removesuffix("."):
        case "consumer" | "source.consumer":
            return SOURCE_CONSUMER
        case "producer" | "producer.override":
            return TARGET_PRODUCER
        case "admin" | "target.admin":
            return TARGET_ADMIN
        case "source.admin":
            return SOURCE_ADMIN
    return ""


def _reads(setting: Setting[object], prefix: str, of_connectors: bool) -> tuple[SettingLocation, ...]:
    """The locations that apply to the client in question, highest first."""
    if setting.where is locations.ALIAS and prefix:
        return locations.of_alias(prefix.partition(".")[0])
    if role := _role(prefix):
        if setting.where is locations.SECURITY:
            return locations.of_security(role, of_connectors)
        chain = _BY_ROLE[role]
        # Each client of a cluster reads what the cluster has for all of them.
        if locations.cluster() in setting.where.read:
            return chain
        return tuple(location for location in setting.where.read if location in chain) or setting.where.read
    if prefix in _BY_CLUSTER:
        return _BY_CLUSTER[prefix]
    return tuple(location for location in setting.where.read if not location.prefix) or setting.where.read


def _subjects(
    settings: Settings, deployment: Deployment, reads: tuple[SettingLocation, ...], owner: str
) -> Iterator[tuple[str, str, str]]:
    if all(location.scope is Scope.TOP for location in reads):
        yield "all", settings.aliases[0], settings.aliases[-1]
        return
    if any(location.scope is Scope.CLUSTER and location.role is Role.EITHER for location in reads):
        for alias in settings.aliases:
            if owner in ("", alias) or alias in owner.split("->"):
                yield alias, alias, alias
        return
    for flow in deployment.all_flows:
        pair = (flow.source.alias, flow.target.alias)
        if owner in ("", flow.name, *pair):
            heartbeats_only = "" if flow in deployment.flows else ", which writes heartbeats only"
            yield flow.name + heartbeats_only, *pair


def _origin(settings: Settings, setting: Setting[object], subject: str, keys: Iterable[SettingKey]) -> Origin:
    entries: list[FileEntry] = []
    for key in keys:
        if key in settings.entries:
            entries.append(settings.entries[key])
        entries += [entry for entry in settings.replaced if entry.key == key.key()]
    values = [_explained(settings, entry) for entry in dict.fromkeys(entries)]
    if not values and setting.default is not None:
        values = [ExplainedValue(shown(setting.name, setting.default))]
    return Origin(subject, values[0] if values else None, tuple(values[1:]))


def _or_name(settings: Settings, origin: Origin, prefix: str) -> Origin:
    """Without an alias that the file sets, it is the name in `clusters`."""
    if origin.value is not None:
        return origin
    source, _, target = origin.subject.partition(",")[0].partition("->")
    name = target if prefix.startswith("target.") else source
    clusters = settings.entries[top_key(CLUSTERS.name)]
    return Origin(origin.subject, ExplainedValue(name, settings.position(clusters), CLUSTERS.name))


def _explained(settings: Settings, entry: FileEntry) -> ExplainedValue:
    value = str(entry.value)
    if not entry.line:
        return ExplainedValue(value, settings.file, f"{entry.key}, which follows from the file")
    return ExplainedValue(value, settings.position(entry), entry.with_owner(entry.name))
