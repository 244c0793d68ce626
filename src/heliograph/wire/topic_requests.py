"""Creating topics and partitions, reading and changing their settings. Says what each answer was, decides nothing."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka.protocol.admin import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError

T = TypeVar("T")
_TOPIC = 2  # resource type in DescribeConfigs
_SET_ON_TOPIC = 1  # config source: a dynamic setting of this very topic
_ENTRIES = 5000
_SET, _DELETE = 0, 1  # operations in IncrementalAlterConfigs


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


async def create_topics(client: ClusterClient, topics: Collection[NewTopic]) -> dict[str, BrokerError | None]:
    """Each topic's outcome: None when it was created."""
    outcome: dict[str, BrokerError | None] = {}
    for some in _chunks(topics, lambda topic: 1 + max(1, topic.partitions) + len(topic.configs)):
        outcome |= await _create_topics(client, some)
    return outcome


async def _create_topics(client: ClusterClient, topics: Collection[NewTopic]) -> dict[str, BrokerError | None]:
    one = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            one(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=[],
                configs=[one.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
            )
            for topic in topics
        ],
        timeout_ms=_timeout(client),
        validate_only=False,
    )
    answer = await (await client.controller()).request(request, newest=7, oldest=1)
    return {got.name: _outcome(got.error_code, got.error_message) for got in answer.topics}


async def create_partitions(client: ClusterClient, counts: Mapping[str, int]) -> dict[str, BrokerError | None]:
    """Grow topics to the given partition counts; each topic's outcome."""
    one = CreatePartitionsRequest.CreatePartitionsTopic
    outcome: dict[str, BrokerError | None] = {}
    for some in _chunks(counts.items(), lambda item: item[1]):
        request = CreatePartitionsRequest(
            topics=[one(name=name, count=count, assignments=None) for name, count in some],
            timeout_ms=_timeout(client),
            validate_only=False,
        )
        answer = await (await client.controller()).request(request)
        outcome |= {got.name: _outcome(got.error_code, got.error_message) for got in answer.results}
    return outcome


async def delete_topics(client: ClusterClient, names: Collection[str]) -> dict[str, BrokerError | None]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=_timeout(client))
    answer = await (await client.controller()).request(request, newest=5)
    return {got.name: _outcome(got.error_code, got.error_message) for got in answer.responses}


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting in force for a topic. `source` says where it comes from."""

    name: str
    value: str | None
    source: int
    read_only: bool = False
    sensitive: bool = False

    @property
    def own(self) -> bool:
        """Whether it was set on this very topic."""
        return self.source == _SET_ON_TOPIC


Configs = dict[str, ConfigEntry]


async def describe_configs(client: ClusterClient, names: Collection[str]) -> dict[str, Configs | BrokerError]:
    """The settings in force for each topic, in one request."""
    if not names:
        return {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[resource(resource_type=_TOPIC, resource_name=name, configuration_keys=None) for name in names],
        include_synonyms=False,
        include_documentation=False,
    )
    answer = await client.ask_any(lambda connection: connection.request(request, newest=4, oldest=1))
    return {
        got.resource_name: BrokerError(got.error_code, got.error_message)
        if got.error_code
        else {
            one.name: ConfigEntry(one.name, one.value, one.config_source, one.read_only, one.is_sensitive)
            for one in got.configs
        }
        for got in answer.results
    }


async def change_configs(
    client: ClusterClient, changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, BrokerError | None]:
    """Set settings of topics, or with None take them back to the default, and leave their others alone.

    Brokers before 2.3 only know how to replace all settings of a topic at once. For them the present ones are read
    first, so that a change by somebody else at the very same moment may get lost.
    """
    outcome: dict[str, BrokerError | None] = {}
    for some in _chunks(changes.items(), lambda item: len(item[1])):
        outcome |= await _change_configs(client, dict(some))
    return outcome


async def _change_configs(
    client: ClusterClient, changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, BrokerError | None]:
    connection = await client.controller()
    if connection.knows(IncrementalAlterConfigsRequest.API_KEY):
        incremental = IncrementalAlterConfigsRequest.AlterConfigsResource
        request: Any = IncrementalAlterConfigsRequest(
            resources=[
                incremental(
                    resource_type=_TOPIC,
                    resource_name=topic,
                    configs=[
                        incremental.AlterableConfig(
                            name=key, config_operation=_DELETE if value is None else _SET, value=value
                        )
                        for key, value in values.items()
                    ],
                )
                for topic, values in changes.items()
            ],
            validate_only=False,
        )
    else:
        resource = AlterConfigsRequest.AlterConfigsResource
        request = AlterConfigsRequest(
            resources=[
                resource(
                    resource_type=_TOPIC,
                    resource_name=topic,
                    configs=[resource.AlterableConfig(name=key, value=value) for key, value in values.items()],
                )
                for topic, values in (await _whole(client, changes)).items()
            ],
            validate_only=False,
        )
    answer = await connection.request(request, newest=1)
    return {got.resource_name: _outcome(got.error_code, got.error_message) for got in answer.responses}


async def _whole(
    client: ClusterClient, changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, dict[str, str | None]]:
    whole: dict[str, dict[str, str | None]] = {}
    for topic, present in (await describe_configs(client, changes.keys())).items():
        if isinstance(present, BrokerError):
            raise present
        kept = {name: one.value for name, one in present.items() if one.own}
        whole[topic] = {name: value for name, value in {**kept, **changes[topic]}.items() if value is not None}
    return whole


def _chunks(items: Iterable[T], weight: Callable[[T], int]) -> Iterator[list[T]]:
    """A controller refuses a request that makes more than 10 000 entries in its log (POLICY_VIOLATION)."""
    chunk: list[T] = []
    total = 0
    for one in items:
        if chunk and total + weight(one) > _ENTRIES:
            yield chunk
            chunk, total = [], 0
        chunk.append(one)
        total += weight(one)
    if chunk:
        yield chunk


def _outcome(code: int, message: str | None) -> BrokerError | None:
    return BrokerError(code, message) if code else None


def _timeout(client: ClusterClient) -> int:
    return int(client.cluster.request_timeout * 1000)
