"""What brokers allow us, as they say themselves: it holds for every authorizer, and for super users.

Operations by the names that `kafka-acls.sh` has. None where a broker does not return them (before 2.3).
"""

from collections.abc import Collection

from kafka.admin import ACLOperation
from kafka.protocol.admin import DescribeGroupsRequest, DescribeProducersRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import EndTxnRequest

from heliograph.wire.acl_requests import may
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.coordinators import GROUP, TRANSACTION, coordinators
from heliograph.wire.errors import (
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    BrokerError,
    WireError,
)

Operations = frozenset[str] | None
_NAMES = {
    operation.value: operation.name.title().replace("_", "")
    for operation in ACLOperation
    if operation.value >= ACLOperation.READ.value
}


def _named(operations: set[int] | None) -> Operations:
    if may(ACLOperation.READ.value, operations) is None:
        return None
    return frozenset(_NAMES[number] for number in operations or () if number in _NAMES)


async def on_cluster_and_topics(
    client: ClusterClient, topics: Collection[str]
) -> tuple[Operations, dict[str, Operations]]:
    """On the cluster, and on each topic, whether it exists or not. Nothing is returned about what we may not
    describe."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    # Versions from 11 on do not return operations on the cluster.
    answer = await client.ask_any(lambda connection: connection.request(request, newest=10, oldest=4))
    on_topics = {
        topic.name: frozenset()
        if topic.error_code == TOPIC_AUTHORIZATION_FAILED
        else _named(topic.authorized_operations)
        for topic in answer.topics
    }
    return _named(getattr(answer, "authorized_operations", None)), on_topics


async def on_groups(client: ClusterClient, groups: Collection[str]) -> dict[str, Operations]:
    """On each group, whether it exists or not."""
    operations: dict[str, Operations] = {}
    for group, node in (await coordinators(client, groups, GROUP)).items():
        if isinstance(node, WireError):
            if not (isinstance(node, BrokerError) and node.forbidden):
                raise node
            operations[group] = frozenset()
            continue
        request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
        # Up to version 5, a group that does not exist is one without members.
        answer = await (await client.connection(node)).request(request, newest=5)
        for described in answer.groups:
            operations[group] = frozenset() if described.error_code else _named(described.authorized_operations)
    return operations


async def may_use_transactional_id(client: ClusterClient, name: str) -> bool:
    """Asks to end a transaction that does not exist, which changes nothing: the right is checked first."""
    node = (await coordinators(client, [name], TRANSACTION))[name]
    if isinstance(node, WireError):
        if isinstance(node, BrokerError) and node.code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return False
        raise node
    request = EndTxnRequest(transactional_id=name, producer_id=0, producer_epoch=0, committed=False)
    answer = await (await client.connection(node)).request(request, newest=3)
    return bool(answer.error_code != TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


async def asks_for_idempotent_write(client: ClusterClient) -> bool:
    """Whether brokers ask for IdempotentWrite on the cluster, beside Write on topics: those before 2.8, which do not
    know DescribeProducers."""

    async def is_from_before(connection: Connection) -> bool:
        return not connection.knows(DescribeProducersRequest.API_KEY)

    return await client.ask_any(is_from_before)
