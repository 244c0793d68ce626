"""Settings that are known, but not read where they are written: what to say about them, and what to write instead."""

from collections.abc import Iterable

from heliograph.config.declare import catalogue
from heliograph.config.declare.locations import Scope, SettingLocation
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import BOOTSTRAP_SERVERS
from heliograph.config.messages import ConfigError
from heliograph.config.read.entry import FileEntry, SettingKey
from heliograph.config.read.settings import Settings

# By what is in front of `bootstrap.servers`: the side that it is about, and what MM2 does at that address.
_CLIENT_ADDRESSES = {
    "consumer.": ("source", "MM2 would read from that address"),
    "source.consumer.": ("source", "MM2 would read from that address"),
    "consumer.override.": ("source", "no client of MM2 gets it"),
    "producer.override.": ("target", "Connect would write the records to that address"),
    "source.producer.": ("source", "MM2 would write offset syncs to that address"),
    "target.producer.": ("target", "MM2 would write offset syncs to that address"),
    "target.consumer.": ("target", "MM2 would read offset syncs and checkpoints from that address"),
    "source.admin.": ("source", "MM2 would look for topics and groups at that address"),
    "target.admin.": ("target", "MM2 would create topics at that address"),
}
_OF_CLUSTER = {"consumer.": "source.consumer.", "producer.": "producer.override.", "admin.": "target.admin."}


def misplaced(key: SettingKey) -> Setting[object] | None:
    """The setting, if it is known and not read at this key."""
    match = catalogue.find(key.scope, key.name)
    if match is not None:
        return match.setting if match.setting.supported and not match.supported else None
    elsewhere = catalogue.find_in_other_scope(key.scope, key.name)
    return elsewhere.setting if elsewhere is not None else catalogue.of_other_client(key.name)


def is_of_other_client(key: SettingKey) -> bool:
    """Whether it is written for a client, or for a cluster, that does not have it: `source.cluster.batch.size`."""
    return not any(catalogue.find(scope, key.name) for scope in Scope)


def no_effect(settings: Settings, setting: Setting[object], key: SettingKey, entry: FileEntry) -> str:
    if entry.spelling and all(location.scope is Scope.TOP for location in setting.where.read):
        return f"'{entry.name}' has no effect in a connector: it is for an mm2.properties or a worker's file"
    neither = ", in MM2 neither" if is_of_other_client(key) else ""
    where = read_from(settings, setting, key, entry)
    return f"'{entry.name}' has no effect{neither}: {setting.name} is read from {where}"


def read_from(settings: Settings, setting: Setting[object], key: SettingKey, entry: FileEntry) -> str:
    """The locations of a setting, written with the aliases of the key in question if it has any."""
    source, target = pair(settings, key)
    spelt_keys = (
        entry.spelt(location.key(setting.name, source, target)) for location in _readable(setting, bool(entry.spelling))
    )
    keys = [f"'{spelt_key}'" for spelt_key in dict.fromkeys(spelt_keys)]
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} or {keys[-1]}"


def _readable(setting: Setting[object], in_connector: bool) -> Iterable[SettingLocation]:
    """All settings of a connector are those of a flow; those of a cluster only if no flow has them."""
    of_flow = tuple(location for location in setting.where.read if location.scope is Scope.FLOW)
    return (of_flow or setting.where.read[:1]) if in_connector else setting.where.read


def pair(settings: Settings, key: SettingKey) -> tuple[str, str]:
    """The flow that a key is about; for a cluster's key the first flow of the file with that cluster."""
    flows = [tuple(other.owner.split("->", 1)) for other in settings.entries if other.scope is Scope.FLOW]
    if key.scope is Scope.FLOW:
        flows = [tuple(key.owner.split("->", 1))]
    elif key.owner:
        flows = [flow for flow in flows if key.owner in flow]
    source, target = flows[0] if flows else (key.owner or settings.aliases[0], "")
    return source, target or next((alias for alias in settings.aliases if alias != source), "B")


def is_lost(settings: Settings, setting: Setting[object], key: SettingKey, entry: FileEntry) -> bool:
    """Whether the flow has another value than the one that is written here."""
    try:
        return settings.parse(setting, entry) != settings.get(setting, *pair(settings, key))
    except ConfigError:
        return True


def is_set_elsewhere(settings: Settings, setting: Setting[object], key: SettingKey) -> bool:
    return settings.find(setting, *pair(settings, key)) is not None


def is_first(settings: Settings, setting: Setting[object], key: SettingKey) -> bool:
    """Whether the setting is written for no other wrong client before: one warning is enough."""
    wrong = (other for other in settings.entries if is_of_other_client(other) and misplaced(other) is setting)
    return next(wrong, key) == key


def client_address(settings: Settings, key: SettingKey, entry: FileEntry) -> tuple[bool, str] | None:
    """For the address of a single client: whether it differs from its cluster's, and what to say. None for others."""
    prefix = key.name.removesuffix(BOOTSTRAP_SERVERS.name)
    if key.scope is Scope.CLUSTER:
        prefix = _OF_CLUSTER.get(prefix, "")
    if not key.name.endswith(BOOTSTRAP_SERVERS.name) or prefix not in _CLIENT_ADDRESSES:
        return None
    side, what = _CLIENT_ADDRESSES[prefix]
    source, target = pair(settings, key)
    alias = key.owner if key.scope is Scope.CLUSTER else source if side == "source" else target
    cluster = settings.find(BOOTSTRAP_SERVERS, alias, alias)
    try:
        if cluster is None or set(settings.parse(BOOTSTRAP_SERVERS, cluster)) == set(
            settings.parse(BOOTSTRAP_SERVERS, entry)
        ):
            return False, f"{entry.name} repeats the address of {alias}"
    except ConfigError:
        return None
    return True, (
        f"{entry.name} is '{entry.value}', but the address of {alias} is '{cluster.value}' ({cluster.name}): {what}; "
        f"Heliograph uses that of {alias}"
    )
