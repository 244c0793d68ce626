"""Access rules of topics: reading and adding them."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError

TOPIC = 2
ANY, LITERAL = 1, 3
READ, WRITE, ALL = 3, 4, 2
DENY, ALLOW = 2, 3
_SECURITY_DISABLED = 54
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """A rule about one topic, with the numbers that Kafka's protocol uses."""

    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


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
