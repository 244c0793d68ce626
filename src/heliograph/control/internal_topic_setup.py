"""The internal topics of a flow: created if they are missing, checked if they exist, never changed."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heliograph.model.flow import CHECKPOINT, CONTINUE, HEARTBEAT, SOURCE, Flow
from heliograph.model.internal_topics import STATUS, dead_letters_topic, ledger_topic, signals_topic
from heliograph.model.ledger_records import PAGES
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import (
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    BrokerError,
    WireError,
    lacking,
    missing_right,
)
from heliograph.wire.metadata import Topic
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.topic_requests import Configs, NewTopic, create_topics, describe_configs

log = logging.getLogger(__name__)

_HOUR = str(3600 * 1000)
_REPLICAS = 3
_COMPACT = ("cleanup.policy", "compact")
# Whatever the broker's defaults: not every installation has every codec, and a broker may refuse records whose
# timestamp is not near its own clock.
_PLAIN = (("compression.type", "uncompressed"), ("message.timestamp.type", "LogAppendTime"))

# Compacted, as newer records of the index replace older ones; and with `delete`, because DeleteRecords, which trims the
# journal, is refused for topics that are only compacted. Small segments, so that either happens soon.
_LEDGER = (
    ("cleanup.policy", "compact,delete"),
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
    ("segment.bytes", str(16 << 20)),
    ("delete.retention.ms", _HOUR),
)


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """`vital`: copying cannot be exact without it. The others are for MM2's tools and for people."""

    topic: NewTopic
    on_source: bool
    vital: bool

    def command(self, bootstrap_servers: Sequence[tuple[str, int]]) -> str:
        """The command that creates it by hand."""
        servers = ",".join(f"{host}:{port}" for host, port in bootstrap_servers)
        configs = "".join(f" --config {key}={value}" for key, value in self.topic.configs)
        return (
            f"kafka-topics.sh --bootstrap-server {servers} --create --topic {self.topic.name} "
            f"--partitions {self.topic.partitions} --replication-factor {self.topic.replication_factor}{configs}"
        )


@dataclass(frozen=True, slots=True)
class _Problem:
    """`vital`: without the topic, the flow does not run. `level` is INFO if the topic can be used."""

    text: str
    vital: bool
    level: int = logging.ERROR


class MissingTopics(Exception):
    """Vital internal topics do not exist and cannot be created, or are not usable; with what to do."""


def internal_topics(flow: Flow, source_brokers: int, target_brokers: int) -> list[InternalTopic]:
    """The topics that the running parts of a flow need. No more replicas than there are brokers."""
    alias, own = flow.source.alias, min(_REPLICAS, target_brokers)
    wanted = []
    if flow.parts & {SOURCE, CHECKPOINT}:
        ledger = NewTopic(ledger_topic(alias), PAGES + 1, own, (*_PLAIN, *_LEDGER))
        wanted.append(InternalTopic(ledger, False, True))
    if SOURCE in flow.parts:
        shortly = (("cleanup.policy", "delete"), ("retention.ms", _HOUR), ("segment.ms", _HOUR))
        signals = NewTopic(signals_topic(alias), STATUS + 1, own, (*_PLAIN, *shortly))
        wanted.append(InternalTopic(signals, False, True))
    if SOURCE in flow.parts and flow.policies.refused_record == CONTINUE:
        keep = (*_PLAIN, ("cleanup.policy", "delete"), ("retention.ms", "-1"), ("max.message.bytes", str(1 << 30)))
        wanted.append(InternalTopic(NewTopic(dead_letters_topic(alias), 1, own, keep), False, False))
    if SOURCE in flow.parts and flow.offset_syncs.enabled:
        on_source = not flow.offset_syncs.on_target
        replicas = _at_most(flow.offset_syncs.replication_factor, source_brokers if on_source else target_brokers)
        wanted.append(InternalTopic(NewTopic(flow.offset_syncs_topic, 1, replicas, (_COMPACT,)), on_source, False))
    if CHECKPOINT in flow.parts and flow.groups.checkpoints_every is not None:
        replicas = _at_most(flow.groups.replication_factor, target_brokers)
        topic = NewTopic(flow.checkpoints_topic, 1, replicas, (_COMPACT,))
        wanted.append(InternalTopic(topic, False, False))
    if HEARTBEAT in flow.parts and flow.heartbeats.every is not None:
        replicas = _at_most(flow.heartbeats.replication_factor, target_brokers)
        wanted.append(InternalTopic(NewTopic(flow.policy.heartbeats_topic(), 1, replicas, (_COMPACT,)), False, False))
    return wanted


def _at_most(factor: int, brokers: int) -> int:
    return min(factor, brokers) if brokers else factor


def what_is_wrong(wanted: InternalTopic, existing: Topic, configs: Configs) -> str | None:
    """Why an existing topic cannot be used, or None."""
    if len(existing.leaders) < wanted.topic.partitions:
        return f"it has {len(existing.leaders)} partitions, and {wanted.topic.partitions} are needed"
    policy = dict(wanted.topic.configs)["cleanup.policy"]
    actual = configs["cleanup.policy"].value if "cleanup.policy" in configs else None
    if actual is not None and policy == "compact" and actual != "compact":
        return f"its cleanup.policy is {actual}, so that records expire: it must be compact"
    if actual is not None and "compact" in policy and "compact" not in actual:
        return f"its cleanup.policy is {actual}: it must be {policy}"
    if actual is not None and policy != "compact" and "compact" in policy and "delete" in actual:
        limits = [
            name for name in ("retention.ms", "retention.bytes") if name in configs and configs[name].value != "-1"
        ]
        if limits:
            return f"its records expire: {' and '.join(limits)} must be -1"
    return None


async def look_up(flow: Flow, source: ClusterClient, target: ClusterClient) -> list[tuple[InternalTopic, Topic]]:
    """The topics that a flow needs, with their metadata: one with an error is missing. Connects the clients."""
    await target.connect()
    if flow.reads_source:
        await source.connect()
    wanted = internal_topics(flow, len(source.brokers), len(target.brokers))
    existing: dict[bool, Mapping[str, Topic]] = {}
    for on_source, client in ((True, source), (False, target)):
        names = [internal.topic.name for internal in wanted if internal.on_source == on_source]
        existing[on_source] = (await client.metadata(names)).topics if names else {}
    return [(internal, existing[internal.on_source][internal.topic.name]) for internal in wanted]


async def ensure_internal_topics(flow: Flow, source: ClusterClient, target: ClusterClient) -> None:
    """Creates missing topics and waits until they are usable. Raises MissingTopics if vital ones are not, and logs the
    problems of others."""
    problems = await _ensure_all(flow, source, target, wait=True)
    for problem in problems:
        if not problem.vital:
            log.log(problem.level, "%s: %s", flow.name, problem.text)
    _raise_vital(f"{flow.name}: ", problems)


async def create_missing_topics(flow: Flow, source: ClusterClient, target: ClusterClient) -> None:
    """Creates missing topics while the flow runs. Raises a WireError with all problems."""
    problems = await _ensure_all(flow, source, target, wait=False)
    if texts := [problem.text for problem in problems if problem.level == logging.ERROR]:
        raise WireError("; ".join(texts))


async def _ensure_all(flow: Flow, source: ClusterClient, target: ClusterClient, *, wait: bool) -> list[_Problem]:
    topics = await look_up(flow, source, target)
    problems: list[_Problem] = []
    for on_source, client in ((True, source), (False, target)):
        wanted = {internal: existing for internal, existing in topics if internal.on_source == on_source}
        problems += await _ensure(client, wanted, wait)
    return problems


def _raise_vital(prefix: str, problems: Sequence[_Problem]) -> None:
    if vital := [problem.text for problem in problems if problem.vital]:
        raise MissingTopics(prefix + "; ".join(vital))


async def ensure_signals_topic(flow: Flow, target: ClusterClient) -> None:
    """Creates the topic of commands and progress again if it is missing: its old content is not needed."""
    name = signals_topic(flow.source.alias)
    existing = (await target.metadata([name])).topics[name]
    wanted = [internal for internal in internal_topics(flow, 0, len(target.brokers)) if internal.topic.name == name]
    _raise_vital("", await _ensure(target, dict.fromkeys(wanted, existing)))


async def ensure_storage_topics(client: ClusterClient, wanted: Mapping[str, tuple[int, int]]) -> None:
    """Creates the topics of a Connect cluster, by name with partitions and replicas; compacted, as Connect needs."""
    await client.connect()
    brokers = len(client.brokers)
    topics = [
        InternalTopic(NewTopic(name, partitions, _at_most(replicas, brokers), (_COMPACT,)), False, True)
        for name, (partitions, replicas) in wanted.items()
    ]
    existing = (await client.metadata(wanted.keys())).topics
    _raise_vital("", await _ensure(client, {internal: existing[internal.topic.name] for internal in topics}))


async def _ensure(client: ClusterClient, wanted: Mapping[InternalTopic, Topic], wait: bool = True) -> list[_Problem]:
    """Creates missing topics; with `wait`, returns when all can be used."""
    missing = [internal.topic for internal, existing in wanted.items() if existing.error]
    outcomes = await create_topics(client, missing)
    present = [internal.topic.name for internal, existing in wanted.items() if not existing.error]
    configs = await describe_configs(client, present)
    problems: list[_Problem] = []
    usable: list[InternalTopic] = []
    for internal, existing in wanted.items():
        error = outcomes.get(internal.topic.name)
        if error is not None and error.code == TOPIC_ALREADY_EXISTS:
            error = None
        text = _problem_of(client, internal, existing, error, configs.get(internal.topic.name))
        if text is not None:
            problems.append(_Problem(text, internal.vital))
            continue
        usable.append(internal)
        if isinstance(refused := configs.get(internal.topic.name), BrokerError):
            text = f"settings of internal topic {internal.topic.name} on {client.cluster.alias} are not checked: "
            text += f"{refused}{lacking(refused.code, 'DescribeConfigs')}"
            problems.append(_Problem(text, False, logging.INFO))
    for vital in (True, False) if wait else ():
        topics = [internal.topic for internal in usable if internal.vital == vital]
        try:
            await _until_usable(
                client, [(topic.name, partition) for topic in topics for partition in range(topic.partitions)]
            )
        except WireError as error:
            if vital:
                raise
            names = ", ".join(topic.name for topic in topics)
            problems.append(_Problem(f"internal topics {names} cannot be used now: {error}", vital))
    return problems


def _problem_of(
    client: ClusterClient,
    internal: InternalTopic,
    existing: Topic,
    error: BrokerError | None,
    configs: Configs | BrokerError | None,
) -> str | None:
    name, alias = internal.topic.name, client.cluster.alias
    if error is not None:
        text = f"internal topic {name} cannot be created on {alias} ({error}); create it by hand: "
        return text + internal.command(client.cluster.bootstrap_servers)
    if not existing.error and (
        wrong := what_is_wrong(internal, existing, configs if isinstance(configs, dict) else {})
    ):
        return f"internal topic {name} on {alias} is not usable: {wrong}"
    return None


async def _until_usable(client: ClusterClient, partitions: list[tuple[str, int]]) -> None:
    """Brokers know a new topic and its leaders a moment after it was created."""
    deadline = time.monotonic() + client.cluster.request_timeout
    while partitions:
        topics = (await client.metadata({name for name, _partition in partitions})).topics
        for name, topic in topics.items():
            if topic.error == TOPIC_AUTHORIZATION_FAILED:
                raise BrokerError(topic.error, missing_right(topic.error, "Describe", f"topic {name}"))
        ends = await list_offsets(client, topics, partitions, LATEST, False)
        problem = next((end for end in ends.values() if isinstance(end, WireError)), None)
        if problem is None:
            return
        if time.monotonic() > deadline:
            raise problem
        await asyncio.sleep(0.05)
