"""Creating topics and partitions, and reading topic configs. Says what each topic's answer was, decides nothing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError

_TOPIC = 2  # resource type in DescribeConfigs
_SET_ON_TOPIC = 1  # config source: a dynamic setting of this very topic
_SET = 0  # operation in IncrementalAlterConfigs


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


async def create_topics(client: ClusterClient, topics: Collection[NewTopic]) -> dict[str, BrokerError | None]:
    """Each topic's outcome: None when it was created."""
    if not topics:
        return {}
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
    if not counts:
        return {}
    one = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(
        topics=[one(name=name, count=count, assignments=None) for name, count in counts.items()],
        timeout_ms=_timeout(client),
        validate_only=False,
    )
    answer = await (await client.controller()).request(request)
    return {got.name: _outcome(got.error_code, got.error_message) for got in answer.results}


async def delete_topics(client: ClusterClient, names: Collection[str]) -> dict[str, BrokerError | None]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=_timeout(client))
    answer = await (await client.controller()).request(request, newest=5)
    return {got.name: _outcome(got.error_code, got.error_message) for got in answer.responses}


async def own_configs(client: ClusterClient, names: Collection[str]) -> dict[str, dict[str, str] | BrokerError]:
    """The settings made on each topic itself, without what it inherits from the broker's defaults."""
    return await _configs(client, names, own_only=True)


async def all_configs(client: ClusterClient, names: Collection[str]) -> dict[str, dict[str, str] | BrokerError]:
    """The settings in force for each topic."""
    return await _configs(client, names, own_only=False)


async def change_configs(client: ClusterClient, name: str, values: Mapping[str, str]) -> BrokerError | None:
    """Set these settings of a topic and leave its others alone."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=_TOPIC,
                resource_name=name,
                configs=[
                    resource.AlterableConfig(name=key, config_operation=_SET, value=value)
                    for key, value in values.items()
                ],
            )
        ],
        validate_only=False,
    )
    answer = await (await client.controller()).request(request, newest=1)
    return _outcome(answer.responses[0].error_code, answer.responses[0].error_message)


async def _configs(
    client: ClusterClient, names: Collection[str], own_only: bool
) -> dict[str, dict[str, str] | BrokerError]:
    if not names:
        return {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[resource(resource_type=_TOPIC, resource_name=name, configuration_keys=None) for name in names],
        include_synonyms=False,
        include_documentation=False,
    )
    connection = await client.to(next(iter(client.brokers)))
    answer = await connection.request(request, newest=4, oldest=1)
    found: dict[str, dict[str, str] | BrokerError] = {}
    for got in answer.results:
        if got.error_code:
            found[got.resource_name] = BrokerError(got.error_code, got.error_message)
            continue
        found[got.resource_name] = {
            entry.name: entry.value
            for entry in got.configs
            if (entry.config_source == _SET_ON_TOPIC or not own_only)
            and entry.value is not None
            and not entry.is_sensitive
        }
    return found


def _outcome(code: int, message: str | None) -> BrokerError | None:
    return BrokerError(code, message) if code else None


def _timeout(client: ClusterClient) -> int:
    return int(client.cluster.request_timeout * 1000)
