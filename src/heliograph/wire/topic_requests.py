"""Creating and deleting topics, creating partitions, describing and altering topic configs."""

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
_DYNAMIC_TOPIC_CONFIG = 1  # config source
_ENTRIES_PER_REQUEST = 5000
_SET, _DELETE = 0, 1  # operations in IncrementalAlterConfigs


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


async def create_topics(client: ClusterClient, topics: Collection[NewTopic]) -> dict[str, BrokerError | None]:
    """Returns each topic's error, None if it was created."""
    outcome: dict[str, BrokerError | None] = {}
    for chunk in _chunks(topics, lambda topic: 1 + max(1, topic.partitions) + len(topic.configs)):
        outcome |= await _create_topics(client, chunk)
    return outcome


async def _create_topics(client: ClusterClient, topics: Collection[NewTopic]) -> dict[str, BrokerError | None]:
    topic_row = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            topic_row(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=[],
                configs=[topic_row.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
            )
            for topic in topics
        ],
        timeout_ms=_timeout(client),
        validate_only=False,
    )
    answer = await (await client.controller()).request(request, newest=7, oldest=1)
    return {topic.name: _outcome(topic.error_code, topic.error_message) for topic in answer.topics}


async def create_partitions(client: ClusterClient, counts: Mapping[str, int]) -> dict[str, BrokerError | None]:
    """Increases partition counts; returns each topic's error."""
    topic_row = CreatePartitionsRequest.CreatePartitionsTopic
    outcome: dict[str, BrokerError | None] = {}
    for chunk in _chunks(counts.items(), lambda item: item[1]):
        request = CreatePartitionsRequest(
            topics=[topic_row(name=name, count=count, assignments=None) for name, count in chunk],
            timeout_ms=_timeout(client),
            validate_only=False,
        )
        answer = await (await client.controller()).request(request)
        outcome |= {topic.name: _outcome(topic.error_code, topic.error_message) for topic in answer.results}
    return outcome


async def delete_topics(client: ClusterClient, names: Collection[str]) -> dict[str, BrokerError | None]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=_timeout(client))
    answer = await (await client.controller()).request(request, newest=5)
    return {topic.name: _outcome(topic.error_code, topic.error_message) for topic in answer.responses}


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config of a topic. `source` is where the value comes from."""

    name: str
    value: str | None
    source: int
    read_only: bool = False
    sensitive: bool = False

    @property
    def own(self) -> bool:
        """Whether it is set on the topic itself."""
        return self.source == _DYNAMIC_TOPIC_CONFIG


Configs = dict[str, ConfigEntry]


async def describe_configs(client: ClusterClient, names: Collection[str]) -> dict[str, Configs | BrokerError]:
    """All configs of each topic, in one request."""
    if not names:
        return {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[resource(resource_type=_TOPIC, resource_name=name, configuration_keys=None) for name in names],
        include_synonyms=False,
        include_documentation=False,
    )
    answer = await client.ask_any(lambda connection: connection.request(request, newest=4, oldest=1), is_heavy=True)
    return {
        result.resource_name: BrokerError(result.error_code, result.error_message)
        if result.error_code
        else {
            entry.name: ConfigEntry(entry.name, entry.value, entry.config_source, entry.read_only, entry.is_sensitive)
            for entry in result.configs
        }
        for result in answer.results
    }


async def change_configs(
    client: ClusterClient, changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, BrokerError | None]:
    """Sets configs of topics, or deletes them (None); leaves their other configs alone.

    Brokers before 2.3 can only replace all configs of a topic. For them the present ones are read first, so a
    concurrent change by somebody else may get lost.
    """
    outcome: dict[str, BrokerError | None] = {}
    for chunk in _chunks(changes.items(), lambda item: len(item[1])):
        outcome |= await _change_configs(client, dict(chunk))
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
                for topic, values in (await _all_configs(client, changes)).items()
            ],
            validate_only=False,
        )
    answer = await connection.request(request, newest=1)
    return {
        response.resource_name: _outcome(response.error_code, response.error_message) for response in answer.responses
    }


async def _all_configs(
    client: ClusterClient, changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, dict[str, str | None]]:
    configs: dict[str, dict[str, str | None]] = {}
    for topic, present in (await describe_configs(client, changes.keys())).items():
        if isinstance(present, BrokerError):
            raise present
        own = {name: entry.value for name, entry in present.items() if entry.own}
        configs[topic] = {name: value for name, value in {**own, **changes[topic]}.items() if value is not None}
    return configs


def _chunks(items: Iterable[T], weight: Callable[[T], int]) -> Iterator[list[T]]:
    """A controller refuses a request that makes more than 10 000 entries in its log (POLICY_VIOLATION)."""
    chunk: list[T] = []
    total = 0
    for item in items:
        if chunk and total + weight(item) > _ENTRIES_PER_REQUEST:
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += weight(item)
    if chunk:
        yield chunk


def _outcome(code: int, message: str | None) -> BrokerError | None:
    return BrokerError(code, message) if code else None


def _timeout(client: ClusterClient) -> int:
    return int(client.cluster.request_timeout * 1000)
