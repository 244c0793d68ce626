"""A member of a group by Kafka's classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The protocol type is our own, so that no consumer and no Connect worker can join. What members tell each other are bytes
that only the caller understands. Does not retry: the caller joins again.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from heliograph.model.flow import Cluster
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.coordinators import GROUP, coordinators
from heliograph.wire.errors import COORDINATOR_MOVES, MEMBER_ID_REQUIRED, BrokerError, WireError, missing_right

PROTOCOL_TYPE = "heliograph"
_PROTOCOL = "flows"
_NO_GENERATION = -1
_GROUP_ID_NOT_FOUND = 69
_LEAVE_GROUP = 13
_LEAVES_SEVERAL = 3  # the first version of LeaveGroup that names several members
_ANSWERS_LATER = 5.0  # how much longer than the rebalance timeout an answer to JoinGroup may take


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to JoinGroup. `members` is what each member has sent, by member id; only the leader gets it."""

    generation: int
    is_leader: bool
    members: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """`metadata` and `assignment` are empty while the group rebalances."""

    id: str
    host: str
    metadata: bytes
    assignment: bytes


async def describe_members(client: ClusterClient, group: str) -> tuple[DescribedMember, ...]:
    """The members of a group of ours; none if it does not exist."""
    node = (await coordinators(client, [group], GROUP))[group]
    if isinstance(node, WireError):
        raise node
    return await _describe(await client.connection(node), group)


class GroupMember:
    """`member_id` is empty until the coordinator has given one. Times are in seconds.

    JoinGroup is answered when all members have joined, and a broker handles the requests of a connection one after the
    other: so it has a connection of its own.
    """

    def __init__(self, cluster: Cluster, group: str, session_timeout: float, rebalance_timeout: float) -> None:
        self.group = group
        self.member_id = ""
        self.generation = _NO_GENERATION
        self._session_timeout = session_timeout
        self._rebalance_timeout = rebalance_timeout
        self._node: int | None = None
        self._client = ClusterClient(cluster)
        self._waiting = ClusterClient(cluster)
        self.use(cluster)

    def use(self, cluster: Cluster) -> None:
        """How to reach the brokers from now on."""
        # So that a heartbeat that is lost can be sent again within the session.
        quick = min(cluster.request_timeout, self._session_timeout / 3)
        slow = max(cluster.request_timeout, self._rebalance_timeout + _ANSWERS_LATER)
        self._client.cluster = replace(cluster, request_timeout=quick)
        self._waiting.cluster = replace(cluster, request_timeout=slow)

    async def join(self, metadata: bytes) -> Joined:
        """Returns when the members are complete, which can take as long as the rebalance timeout."""
        while True:
            try:
                answer = await self._send(self._waiting, self._join_request(metadata), 9)
            except BaseException:
                self._waiting.close()  # the next request would wait for the answer to this one
                raise
            if answer.error_code != MEMBER_ID_REQUIRED:
                break
            self.member_id = answer.member_id
        self._check(answer.error_code)
        self.member_id, self.generation = answer.member_id, answer.generation_id
        is_leader = answer.leader == answer.member_id
        return Joined(
            answer.generation_id, is_leader, {each.member_id: bytes(each.metadata) for each in answer.members}
        )

    def _join_request(self, metadata: bytes) -> JoinGroupRequest:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=metadata)
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=int(self._session_timeout * 1000),
            rebalance_timeout_ms=int(self._rebalance_timeout * 1000),
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
            reason=None,
        )

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Returns this member's assignment. The leader gives those of all members, by member id; the others none."""
        rows = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assignments.items()
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
            assignments=rows,
        )
        answer = await self._send(self._waiting, request, 5)
        self._check(answer.error_code)
        return bytes(answer.assignment)

    async def heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id, group_instance_id=None
        )
        self._check((await self._send(self._client, request, 4)).error_code)

    async def leave(self) -> None:
        if self.member_id:
            await self.remove([self.member_id])
            self.member_id = ""

    async def remove(self, member_ids: Collection[str]) -> None:
        """Removes members from the group. One that is not in it any more is no error."""
        try:
            connection = await self._connection(self._client)
        except WireError:
            self._node = None
            raise
        row = LeaveGroupRequest.MemberIdentity
        if connection.version(_LEAVE_GROUP, 5) >= _LEAVES_SEVERAL:
            rows = [row(member_id=member_id, group_instance_id=None, reason=None) for member_id in member_ids]
            requests = [LeaveGroupRequest(group_id=self.group, member_id="", members=rows)]
        else:
            requests = [
                LeaveGroupRequest(group_id=self.group, member_id=member_id, members=[]) for member_id in member_ids
            ]
        for request in requests:
            code = (await self._send(self._client, request, 5)).error_code
            if code in COORDINATOR_MOVES:
                self._check(code)

    async def describe(self) -> tuple[DescribedMember, ...]:
        try:
            return await _describe(await self._connection(self._client), self.group)
        except WireError:
            self._node = None
            raise

    def close(self) -> None:
        self._client.close()
        self._waiting.close()

    async def _send(self, client: ClusterClient, request: Any, newest: int) -> Any:
        try:
            return await (await self._connection(client)).request(request, newest=newest)
        except WireError:
            self._node = None
            raise

    async def _connection(self, client: ClusterClient) -> Connection:
        """To the coordinator."""
        if self._node is None:
            node = (await coordinators(self._client, [self.group], GROUP))[self.group]
            if isinstance(node, WireError):
                raise node
            self._node = node
        if self._node not in client.brokers:
            await client.metadata([])
        return await client.connection(self._node)

    def _check(self, code: int) -> None:
        if code in COORDINATOR_MOVES:
            self._node = None
        if code:
            raise BrokerError(code, missing_right(code, "Read", f"group {self.group}") or f"group {self.group}")


async def _describe(connection: Connection, group: str) -> tuple[DescribedMember, ...]:
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
    (described,) = (await connection.request(request, newest=5)).groups
    if described.error_code not in (0, _GROUP_ID_NOT_FOUND):
        code = described.error_code
        raise BrokerError(code, missing_right(code, "Describe", f"group {group}") or f"group {group}")
    return tuple(
        DescribedMember(
            member.member_id,
            member.client_host.lstrip("/"),
            bytes(member.member_metadata or b""),
            bytes(member.member_assignment or b""),
        )
        for member in described.members
    )
