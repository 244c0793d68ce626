"""The configs syncer: which settings of a source topic its mirror has, at its creation and later."""

import logging
from collections.abc import Mapping, Sequence

from heliograph.model.batch_limits import LIMITS
from heliograph.model.flow import Flow, TopicSync
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import INVALID_CONFIG, BrokerError
from heliograph.wire.topic_requests import ConfigEntry, Configs, change_configs, describe_configs

log = logging.getLogger(__name__)

_STATIC, _DEFAULT = 4, 5  # where a setting comes from: a broker's file, Kafka itself
_NEVER = str(2**63 - 1)

# A mirror keeps what the source's records say: their times and their compression, whatever the target's defaults.
FAITHFUL = {"message.timestamp.type": "CreateTime", "compression.type": "producer"}
# Since 4.0 a broker refuses records from more than an hour ahead unless told otherwise; before 3.6 it does not know
# these settings and refuses the topic instead (INVALID_CONFIG).
ANY_TIME = {"message.timestamp.after.max.ms": _NEVER, "message.timestamp.before.max.ms": _NEVER}


def new_mirror_configs(sync: TopicSync, configs: Configs) -> dict[str, str]:
    """The settings of a new mirror: the source topic's without the excluded, and those that faithfulness needs."""
    kept = {
        one.name: one.value
        for one in configs.values()
        if _carried(sync, one) and (one.source != _DEFAULT or sync.source_defaults) and one.value is not None
    }
    return kept | FAITHFUL | ANY_TIME


def config_changes(
    sync: TopicSync, source: Configs, mirror: Configs, may_raise_limits: bool = True
) -> dict[str, str | None]:
    """What to change on a mirror, by MM2's rules: what the source topic has by default, the mirror has by its own
    default (None), everything else as the source has it. Nothing where the mirror has it so already."""
    changes: dict[str, str | None] = {}
    for name, one in source.items():
        if not _carried(sync, one) or name in FAITHFUL or name in ANY_TIME or name not in mirror:
            continue
        there = mirror[name]
        wanted = one.value if one.source != _DEFAULT or sync.source_defaults else None
        if (there.value, there.own) == (wanted, True) or (wanted is None and not there.own):
            continue
        if name in LIMITS and may_raise_limits and there.own and int(there.value or 0) >= int(one.value or 0):
            continue  # raised for a batch that needed it
        changes[name] = wanted
    return changes


def _carried(sync: TopicSync, one: ConfigEntry) -> bool:
    return not one.read_only and not one.sensitive and one.source != _STATIC and not sync.exclude.matches(one.name)


async def _one_by_one(target: ClusterClient, mirror: str, changes: Mapping[str, str | None]) -> BrokerError | None:
    """A broker takes all changes of a topic or none: let the one that it refuses not hold up the others."""
    refused = None
    for key, value in changes.items():
        refused = (await change_configs(target, {mirror: {key: value}}))[mirror] or refused
    return refused


async def pending_changes(
    flow: Flow, source: ClusterClient, target: ClusterClient, topics: Sequence[str]
) -> tuple[dict[str, dict[str, str | None]], dict[str, str]]:
    """What must change on the mirrors of these topics, by mirror; and the topics of which it is not known, with why."""
    there = await describe_configs(source, topics)
    here = await describe_configs(target, [flow.mirror_name(topic) for topic in topics])
    failed: dict[str, str] = {}
    changes: dict[str, dict[str, str | None]] = {}
    for topic in topics:
        original, mirror = there.get(topic, {}), here.get(flow.mirror_name(topic), {})
        if isinstance(original, BrokerError) or isinstance(mirror, BrokerError):
            side = flow.source.alias if isinstance(original, BrokerError) else flow.target.alias
            said = original if isinstance(original, BrokerError) else mirror
            failed[topic] = f"settings cannot be read on {side}: {said}"
        elif change := config_changes(flow.topic_sync, original, mirror, flow.may_raise_limits):
            changes[flow.mirror_name(topic)] = change
    return changes, failed


async def sync_configs(
    flow: Flow, source: ClusterClient, target: ClusterClient, topics: Sequence[str]
) -> dict[str, str]:
    """Bring the settings of these topics' mirrors up to date: a request to each side, and one more if there are
    changes. Returns, for the topics with which it did not work out, why."""
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
        said_so = ", ".join(f"{key}={'(default)' if v is None else v}" for key, v in changes[mirror_name].items())
        if error is None:
            log.info("%s: mirror %s: %s, as its source topic", flow.name, mirror_name, said_so)
        else:
            failed[topic] = f"mirror {mirror_name} does not take {said_so}: {error}"
    return failed
