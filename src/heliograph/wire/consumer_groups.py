"""Consumer groups: listing, describing and deleting them; reading and committing their offsets.

One request has as many groups as the broker supports: all of a coordinator since 3.0, one before. Errors are returned
per group, so that one group does not hold up the others.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from heliograph.model.partitions import TopicPartition
from heliograph.wire.acl_requests import READ, may
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.coordinators import GROUP, PAUSE, TRIES, coordinators
from heliograph.wire.errors import COORDINATOR_MOVES, GROUP_AUTHORIZATION_FAILED, BrokerError, WireError, missing_right
from heliograph.wire.metadata import NO_ID

Answer = TypeVar("Answer")

EMPTY, DEAD, UNKNOWN = "Empty", "Dead", "Unknown"
_WITH_OFFSETS = frozenset({"consumer", "streams", ""})
_OFFSET_FETCH = 9
_GROUP_ID_NOT_FOUND = 69
_COMMITS_IN_FLIGHT = 50


@dataclass(frozen=True, slots=True)
class Committed:
    """An offset of -1 means that the group has none for the partition, or that it was deleted."""

    offset: int
    metadata: str = ""


Offsets = dict[TopicPartition, Committed]


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in the answer to ListGroups. `kind` is the protocol type, empty if it never had members; `state` is empty
    on brokers before 2.6."""

    kind: str
    state: str

    @property
    def has_offsets(self) -> bool:
        """Connect workers and the like are groups, too, but have no offsets to translate."""
        return self.kind in _WITH_OFFSETS

    @property
    def is_share_group(self) -> bool:
        """A share group has no committed offsets: brokers track which records were acknowledged (KIP-932)."""
        return self.kind == "share"


async def list_groups(client: ClusterClient) -> dict[str, GroupListing]:
    """All groups of the cluster. Asks again while a broker loads them, as it does right after its start."""
    await client.metadata([])

    async def ask(node: int) -> Any:
        for _ in range(TRIES):
            answer = await (await client.connection(node)).request(ListGroupsRequest(states_filter=[], types_filter=[]))
            if answer.error_code not in COORDINATOR_MOVES:
                break
            await asyncio.sleep(PAUSE)
        if answer.error_code:
            raise BrokerError(answer.error_code, f"listing groups of broker {node}")
        return answer

    answers = await asyncio.gather(*(ask(node) for node in list(client.brokers)))
    return {
        group.group_id: GroupListing(group.protocol_type, getattr(group, "group_state", "") or "")
        for answer in answers
        for group in answer.groups
    }


async def consumer_groups(client: ClusterClient) -> list[str]:
    """The groups that have offsets to translate."""
    return sorted(group for group, listing in (await list_groups(client)).items() if listing.has_offsets)


async def group_states(client: ClusterClient, groups: Collection[str]) -> dict[str, str]:
    """The state of each group; DEAD if it does not exist. From ListGroups, or DescribeGroups on brokers before 2.6."""
    listed = await list_groups(client)
    states = {group: listed[group].state if group in listed else DEAD for group in groups}
    unclear = [group for group, state in states.items() if not state]
    states.update(dict.fromkeys(unclear, UNKNOWN))
    for node, group_ids in _by_node(await coordinators(client, unclear, GROUP)).items():
        connection = await client.connection(node)
        answer = await connection.request(DescribeGroupsRequest(groups=group_ids, include_authorized_operations=False))
        for group in answer.groups:
            if group.error_code in (0, _GROUP_ID_NOT_FOUND):
                states[group.group_id] = DEAD if group.error_code else group.group_state
    return states


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """Members as "client id on host", and whether we may commit for the group (None: the broker does not return it)."""

    members: tuple[str, ...]
    may_commit: bool | None


async def describe_groups(client: ClusterClient, groups: Collection[str]) -> dict[str, GroupDescription]:
    """One request per coordinator. Left out: groups of the new consumer protocol, and those with errors."""
    descriptions: dict[str, GroupDescription] = {}

    async def ask(node: int, group_ids: list[str]) -> None:
        request = DescribeGroupsRequest(groups=group_ids, include_authorized_operations=True)
        try:
            answer = await (await client.connection(node)).request(request, newest=5)
        except WireError:
            return
        for group in answer.groups:
            if not group.error_code:
                members = tuple(f"{member.client_id} on {member.client_host.lstrip('/')}" for member in group.members)
                descriptions[group.group_id] = GroupDescription(members, may(READ, group.authorized_operations))

    by_node = _by_node(await coordinators(client, groups, GROUP))
    await asyncio.gather(*(ask(node, group_ids) for node, group_ids in by_node.items()))
    return descriptions


async def committed_offsets(client: ClusterClient, groups: Collection[str]) -> dict[str, Offsets | WireError]:
    """The committed offsets of each group, for all partitions."""

    async def ask(node: int, group_ids: list[str]) -> dict[str, Offsets | WireError]:
        connection = await client.connection(node)
        if connection.version(_OFFSET_FETCH, 9) >= 8:
            return await _fetch_many(connection, group_ids)
        return {group: await _fetch_one(connection, group) for group in group_ids}

    return await _of_coordinators(client, groups, ask)


async def commit_offsets(
    client: ClusterClient,
    wanted: Mapping[str, Mapping[TopicPartition, Committed]],
    ids: Mapping[str, uuid.UUID] | None = None,
) -> dict[str, WireError | None]:
    """Commits for groups without members; a broker refuses it for a group with members (UNKNOWN_MEMBER_ID). Returns
    each group's first error.

    With the ids of all topics, brokers from 4.1 on refuse to commit for recreated topics (UNKNOWN_TOPIC_ID). Earlier
    brokers know names only.
    """
    in_flight = asyncio.Semaphore(_COMMITS_IN_FLIGHT)

    async def ask(node: int, group_ids: list[str]) -> dict[str, WireError | None]:
        connection = await client.connection(node)

        async def commit(group: str) -> WireError | None:
            async with in_flight:
                return await _commit(connection, group, wanted[group], ids or {})

        return dict(zip(group_ids, await asyncio.gather(*map(commit, group_ids)), strict=True))

    return await _of_coordinators(client, wanted.keys(), ask)


async def delete_groups(client: ClusterClient, groups: Collection[str]) -> dict[str, WireError | None]:
    """Returns each group's error. A broker refuses it for a group with members (NON_EMPTY_GROUP)."""

    async def ask(node: int, group_ids: list[str]) -> dict[str, WireError | None]:
        answer = await (await client.connection(node)).request(DeleteGroupsRequest(groups_names=group_ids), newest=2)
        return {
            result.group_id: BrokerError(
                result.error_code, missing_right(result.error_code, "Delete", f"group {result.group_id}")
            )
            if result.error_code
            else None
            for result in answer.results
        }

    return await _of_coordinators(client, groups, ask)


async def _of_coordinators(
    client: ClusterClient,
    groups: Collection[str],
    ask: Callable[[int, list[str]], Awaitable[Mapping[str, Answer | WireError]]],
) -> dict[str, Answer | WireError]:
    """What the coordinator of each group answers; retried while coordinators load or move."""
    answers: dict[str, Answer | WireError] = {}

    async def ask_one(node: int, group_ids: list[str]) -> None:
        try:
            answers.update(await ask(node, group_ids))
        except WireError as error:
            answers.update(dict.fromkeys(group_ids, error))

    for _ in range(TRIES):
        try:
            nodes = await coordinators(client, groups, GROUP)
        except WireError:
            if not answers:
                raise
            break  # the answers of the other coordinators stay valid
        answers.update({group: node for group, node in nodes.items() if isinstance(node, WireError)})
        by_node = _by_node(nodes)
        await asyncio.gather(*(ask_one(node, group_ids) for node, group_ids in by_node.items()))
        groups = [group for group_ids in by_node.values() for group in group_ids if _moves(answers[group])]
        if not groups:
            break
        await asyncio.sleep(PAUSE)
    return answers


def _moves(answer: object) -> bool:
    return isinstance(answer, BrokerError) and answer.code in COORDINATOR_MOVES


async def _commit(
    connection: Connection, group: str, offsets: Mapping[TopicPartition, Committed], ids: Mapping[str, uuid.UUID]
) -> WireError | None:
    topic_row = OffsetCommitRequest.OffsetCommitRequestTopic
    by_id = all(ids.get(topic, NO_ID).int for topic, _partition in offsets)
    by_topic: dict[str, list[Any]] = {}
    for (topic, partition), committed in offsets.items():
        by_topic.setdefault(topic, []).append(
            topic_row.OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=committed.offset,
                committed_leader_epoch=-1,
                committed_metadata=committed.metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[
            topic_row(name=topic, topic_id=ids.get(topic, NO_ID), partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
    )
    try:
        answer = await connection.request(request, newest=10 if by_id else 9)
    except WireError as error:
        return error
    codes = [part.error_code for topic in answer.topics for part in topic.partitions if part.error_code]
    if not codes:
        return None
    resource = f"group {group}" if codes[0] == GROUP_AUTHORIZATION_FAILED else "the topics of its offsets"
    return BrokerError(codes[0], missing_right(codes[0], "Read", resource))


def _by_node(nodes: Mapping[str, int | WireError]) -> dict[int, list[str]]:
    by_node: dict[int, list[str]] = {}
    for group, node in nodes.items():
        if not isinstance(node, WireError):
            by_node.setdefault(node, []).append(group)
    return by_node


async def _fetch_many(connection: Connection, groups: list[str]) -> dict[str, Offsets | WireError]:
    group_row = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(
        groups=[group_row(group_id=group, member_id=None, member_epoch=-1, topics=None) for group in groups],
        require_stable=False,
    )
    answer = await connection.request(request, newest=9, oldest=8)
    return {group.group_id: _offsets_or_error(group) for group in answer.groups}


async def _fetch_one(connection: Connection, group: str) -> Offsets | WireError:
    request = OffsetFetchRequest(group_id=group, topics=None, require_stable=False)
    try:
        return _offsets_or_error(await connection.request(request, newest=7, oldest=2))
    except WireError as error:
        return error


def _offsets_or_error(answer: Any) -> Offsets | WireError:
    if answer.error_code not in (0, _GROUP_ID_NOT_FOUND):
        return BrokerError(answer.error_code)
    return {
        (topic.name, part.partition_index): Committed(part.committed_offset, part.metadata or "")
        for topic in answer.topics
        for part in topic.partitions
        if not part.error_code
    }
