"""ACLs of topics: describing and creating them; and which operations we are allowed ourselves."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafka.admin import ACLOperation, ACLPermissionType
from kafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest
from kafka.protocol.metadata import MetadataRequest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError, missing_right

TOPIC = 2
ANY, LITERAL = 1, 3
READ, WRITE, DELETE, ALL = 3, 4, 6, 2
DENY, ALLOW = 2, 3
_SECURITY_DISABLED = 54
_ACLS_PER_REQUEST = 1000
_NOT_SET = 31  # instead of operations, from brokers that do not return them


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """An ACL of a topic, with the numbers of Kafka's protocol."""

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
    """Whether an operation is among the authorized ones; None if the broker does not return them (before 2.3)."""
    return None if allowed is None or _NOT_SET in allowed else operation in allowed


async def may_do(client: ClusterClient, operation: int, topics: Collection[str]) -> dict[str, bool | None]:
    """Whether we are allowed an operation on each topic; None if the broker does not return it."""
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
    """All ACLs of topics; None where the cluster has no authorizer."""
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
        why = missing_right(answer.error_code, "Describe", "the cluster") or answer.error_message
        raise BrokerError(answer.error_code, why)
    return {
        Acl(resource.resource_name, resource.pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type)
        for resource in answer.resources
        for acl in resource.acls
    }


async def create_acls(client: ClusterClient, acls: Sequence[Acl]) -> list[BrokerError | None]:
    """The outcome of each, in the same order."""
    creation = CreateAclsRequest.AclCreation
    outcomes: list[BrokerError | None] = []
    for start in range(0, len(acls), _ACLS_PER_REQUEST):
        request = CreateAclsRequest(
            creations=[
                creation(
                    resource_type=TOPIC,
                    resource_name=acl.name,
                    resource_pattern_type=acl.pattern,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in acls[start : start + _ACLS_PER_REQUEST]
            ]
        )
        answer = await (await client.controller()).request(request, oldest=1)
        outcomes += [
            BrokerError(result.error_code, result.error_message) if result.error_code else None
            for result in answer.results
        ]
    return outcomes
