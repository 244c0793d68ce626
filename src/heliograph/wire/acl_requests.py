"""Access rules of topics: reading and adding them; and what we ourselves may do."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafka.admin import ACLOperation, ACLPermissionType
from kafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest
from kafka.protocol.metadata import MetadataRequest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError

TOPIC = 2
ANY, LITERAL = 1, 3
READ, WRITE, DELETE, ALL = 3, 4, 6, 2
DENY, ALLOW = 2, 3
_SECURITY_DISABLED = 54
_AT_ONCE = 1000
_NOT_TOLD = 31


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """A rule about one topic, with the numbers that Kafka's protocol uses."""

    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        permission, operation = ACLPermissionType(self.permission).name, ACLOperation(self.operation).name
        return f"{permission} {operation} on topic {self.name} to {self.principal} from host {self.host}"


def may(operation: int, allowed: set[int] | None) -> bool | None:
    """By the operations that a broker allows us on something; None if it does not say (before 2.3)."""
    return None if allowed is None or _NOT_TOLD in allowed else operation in allowed


async def may_do(client: ClusterClient, operation: int, topics: Collection[str]) -> dict[str, bool | None]:
    """Whether we may do this to each of some topics; None if the cluster does not say."""
    if not topics:
        return {}
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    answer = await client.ask_any(lambda connection: connection.request(request, newest=12, oldest=4))
    return {topic.name: may(operation, topic.authorized_operations) for topic in answer.topics}


async def topic_acls(client: ClusterClient) -> set[Acl] | None:
    """All rules about topics; None where the cluster checks no access at all."""
    request = DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answer = await (await client.controller()).request(request, oldest=1)
    if answer.error_code == _SECURITY_DISABLED:
        return None
    if answer.error_code:
        raise BrokerError(answer.error_code, answer.error_message)
    return {
        Acl(found.resource_name, found.pattern_type, one.principal, one.host, one.operation, one.permission_type)
        for found in answer.resources
        for one in found.acls
    }


async def create_acls(client: ClusterClient, acls: Sequence[Acl]) -> list[BrokerError | None]:
    """Each one's outcome, in the same order."""
    creation = CreateAclsRequest.AclCreation
    outcomes: list[BrokerError | None] = []
    for start in range(0, len(acls), _AT_ONCE):
        request = CreateAclsRequest(
            creations=[
                creation(
                    resource_type=TOPIC,
                    resource_name=one.name,
                    resource_pattern_type=one.pattern,
                    principal=one.principal,
                    host=one.host,
                    operation=one.operation,
                    permission_type=one.permission,
                )
                for one in acls[start : start + _AT_ONCE]
            ]
        )
        answer = await (await client.controller()).request(request, oldest=1)
        outcomes += [
            BrokerError(one.error_code, one.error_message) if one.error_code else None for one in answer.results
        ]
    return outcomes
