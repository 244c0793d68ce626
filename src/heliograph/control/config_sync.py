"""Syncing topic configs: which configs of a source topic its mirror gets, when it is created and later."""

import logging
from collections.abc import Mapping, Sequence

from heliograph.model.batch_limits import LIMITS
from heliograph.model.flow import Flow, TopicSync
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import INVALID_CONFIG, BrokerError, lacking
from heliograph.wire.topic_requests import ConfigEntry, Configs, change_configs, describe_configs

log = logging.getLogger(__name__)

_STATIC, _DEFAULT = 4, 5  # config sources: the broker's properties file, Kafka's default
_NO_LIMIT = str(2**63 - 1)

# A mirror keeps the timestamps and the compression of the source's records, whatever the target's defaults.
FAITHFUL = {"message.timestamp.type": "CreateTime", "compression.type": "producer"}
# Since 4.0 a broker by default refuses records from more than an hour ahead; before 3.6 it does not know these configs
# and refuses the topic instead (INVALID_CONFIG).
ANY_TIME = {"message.timestamp.after.max.ms": _NO_LIMIT, "message.timestamp.before.max.ms": _NO_LIMIT}


def new_mirror_configs(sync: TopicSync, configs: Configs) -> dict[str, str]:
    """The configs of a new mirror: those of the source topic without the excluded ones, FAITHFUL and ANY_TIME."""
    synced = {
        entry.name: entry.value
        for entry in configs.values()
        if _is_synced(sync, entry) and (entry.source != _DEFAULT or sync.source_defaults) and entry.value is not None
    }
    return synced | FAITHFUL | ANY_TIME


def config_changes(
    sync: TopicSync, source: Configs, mirror: Configs, may_raise_limits: bool = True
) -> dict[str, str | None]:
    """What to change on a mirror, by MM2's rules: configs that the source topic has by default are deleted (None), all
    others are set as on the source. Only those that differ."""
    changes: dict[str, str | None] = {}
    for name, entry in source.items():
        if not _is_synced(sync, entry) or name in FAITHFUL or name in ANY_TIME or name not in mirror:
            continue
        present = mirror[name]
        wanted = entry.value if entry.source != _DEFAULT or sync.source_defaults else None
        if (present.value, present.own) == (wanted, True) or (wanted is None and not present.own):
            continue
        if name in LIMITS and may_raise_limits and present.own and int(present.value or 0) >= int(entry.value or 0):
            continue  # raised for a batch that needed it
        changes[name] = wanted
    return changes


def _is_synced(sync: TopicSync, entry: ConfigEntry) -> bool:
    is_settable = not entry.read_only and not entry.sensitive and entry.source != _STATIC
    return is_settable and not sync.exclude.matches(entry.name)


async def _one_by_one(target: ClusterClient, mirror: str, changes: Mapping[str, str | None]) -> BrokerError | None:
    """A broker applies all changes of a topic or none: one that it refuses must not hold up the others."""
    refused = None
    for key, value in changes.items():
        refused = (await change_configs(target, {mirror: {key: value}}))[mirror] or refused
    return refused


async def pending_changes(
    flow: Flow, source: ClusterClient, target: ClusterClient, topics: Sequence[str]
) -> tuple[dict[str, dict[str, str | None]], dict[str, str]]:
    """The changes by mirror; and, by topic, why they are not known."""
    source_configs = await describe_configs(source, topics)
    mirror_configs = await describe_configs(target, [flow.mirror_name(topic) for topic in topics])
    failed: dict[str, str] = {}
    changes: dict[str, dict[str, str | None]] = {}
    for topic in topics:
        original, mirror = source_configs.get(topic, {}), mirror_configs.get(flow.mirror_name(topic), {})
        if isinstance(original, BrokerError) or isinstance(mirror, BrokerError):
            side = flow.source.alias if isinstance(original, BrokerError) else flow.target.alias
            error = original if isinstance(original, BrokerError) else mirror
            assert isinstance(error, BrokerError)
            failed[topic] = f"settings cannot be read on {side}: {error}{lacking(error.code, 'DescribeConfigs')}"
        elif change := config_changes(flow.topic_sync, original, mirror, flow.may_raise_limits):
            changes[flow.mirror_name(topic)] = change
    return changes, failed


async def sync_configs(
    flow: Flow, source: ClusterClient, target: ClusterClient, topics: Sequence[str]
) -> dict[str, str]:
    """Updates the configs of these topics' mirrors: one request to each cluster, and one more if there are changes.
    Returns why, for topics that failed."""
    changes, failed = await pending_changes(flow, source, target, topics)
    outcomes = await change_configs(target, changes)
    for mirror_name, error in outcomes.items():
        if error is not None and error.code == INVALID_CONFIG and len(changes[mirror_name]) > 1:
            outcomes[mirror_name] = await _one_by_one(target, mirror_name, changes[mirror_name])
    for topic in topics:
        mirror_name = flow.mirror_name(topic)
        if mirror_name not in changes:
            continue
        error = outcomes.get(mirror_name)
        settings = changes[mirror_name].items()
        change_text = ", ".join(f"{key}={'(default)' if value is None else value}" for key, value in settings)
        if error is None:
            log.info("%s: mirror %s: %s, as its source topic", flow.name, mirror_name, change_text)
        else:
            right = lacking(error.code, "AlterConfigs")
            failed[topic] = f"mirror {mirror_name} does not take {change_text}: {error}{right}"
    return failed
