"""Groups of Kafka Streams' own protocol (KIP-1071) are synced like others; share groups are named with the reason."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from copying.lease import copy, only
from heliograph.model.flow import Flow, Groups
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.group_report import GroupStanding, NoAnswer, look_at_groups, sync_now
from heliograph.wire.consumer_groups import EMPTY, committed_offsets, list_groups
from heliograph.wire.coordinators import GROUP, coordinators
from heliograph.wire.errors import COORDINATOR_MOVES
from logs import Log, Pair, on, some_records, until
from running.command import in_process

_SHARE_GROUP_HEARTBEAT, _STREAMS_GROUP_HEARTBEAT = (76, 1), (88, 0)  # api key, version
_JOIN, _LEAVE = 0, -1  # as epoch of a member
_MEMBER = "A" * 22
_EMPTY_LIST, _NULL, _NULL_STRUCT, _NO_TAGS, _FALSE = b"\x01", b"\x00", b"\xff", b"\x00", b"\x00"


def _text(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


def _list(*items: bytes) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)


def _number(value: int) -> bytes:
    return struct.pack(">i", value)


def _share_member(group: str, epoch: int, topic: str) -> bytes:
    topics = _list(_text(topic)) if epoch == _JOIN else _NULL
    return _text(group) + _text(_MEMBER) + _number(epoch) + _NULL + topics + _NO_TAGS


def _streams_member(group: str, epoch: int, topic: str) -> bytes:
    """Of an application that reads one topic and keeps no state."""
    head = _text(group) + _text(_MEMBER) + _number(epoch) + _number(0) + _NULL * 2
    if epoch == _LEAVE:
        return head + _number(-1) + _NULL_STRUCT + _NULL * 4 + _NULL_STRUCT + _NULL * 3 + _FALSE + _NO_TAGS
    reads = _text("0") + _list(_text(topic)) + _EMPTY_LIST * 5 + _NO_TAGS
    topology = b"\x01" + _number(0) + _list(reads) + _NO_TAGS
    tasks, process = _EMPTY_LIST * 3, _text("process")
    return (
        head + _number(10_000) + topology + tasks + process + _NULL_STRUCT + _EMPTY_LIST + _NULL * 2 + _FALSE + _NO_TAGS
    )


def _beat(log: Log, request: tuple[int, int], group: str, body: bytes) -> None:
    """One heartbeat, by which a member joins or leaves; again while the coordinator is getting ready."""

    async def ask(client: Any) -> int:
        (node,) = (await coordinators(client, [group], GROUP)).values()
        answer = await (await client.connection(node)).send_parts(*request, [_NO_TAGS, body], bytes)
        (code,) = struct.unpack_from(">h", answer, 5)  # behind the header's tags and a throttle time
        assert code == 0 or code in COORDINATOR_MOVES, answer
        return int(code)

    until(lambda: on(log, ask) == 0)


def _streams(log: Log, group: str, epoch: int, topic: str) -> None:
    _beat(log, _STREAMS_GROUP_HEARTBEAT, group, _streams_member(group, epoch, topic))


def _share(log: Log, group: str, epoch: int, topic: str) -> None:
    _beat(log, _SHARE_GROUP_HEARTBEAT, group, _share_member(group, epoch, topic))


def _flow(pair: Pair, topic: str) -> Flow:
    groups = Groups(NameFilter((f"{topic}-g.*",), (".*-unwanted",)), 3600.0, 3600.0, 3600.0, 1)
    return replace(only(pair.flow(), topic), groups=groups)


def _standing(flow: Flow, group: str) -> GroupStanding:
    (found,) = asyncio.run(look_at_groups(flow, group)).groups
    return found


def _keep(flow: Flow, do: Callable[[FlowSyncers], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        syncers = FlowSyncers(flow)
        try:
            await syncers.prepare()
            return await do(syncers)
        finally:
            syncers.close()

    return asyncio.run(main())


async def _untouched(syncers: FlowSyncers) -> dict[str, str]:
    await syncers.translate_once()
    return syncers.synced_groups.untouched


def _offset(log: Log, group: str, topic: str) -> int:
    offset: int = on(log, lambda client: committed_offsets(client, [group]))[group][topic, 0].offset
    return offset


def test_a_streams_group_is_synced_and_left_alone_while_it_is_in_use(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    flow, group, mirror = _flow(pair, topic), f"{topic}-g", f"A.{topic}"
    copy(flow)
    _streams(pair.a, group, _JOIN, topic)
    _streams(pair.a, group, _LEAVE, topic)
    pair.a.commit(group, topic, 10)
    found = on(pair.a, list_groups)[group]
    assert (found.kind, found.state) == ("streams", EMPTY)
    assert _keep(flow, _untouched) == {}
    assert _offset(pair.b, group, mirror) == 10
    assert _standing(flow, group).state == "synced"

    # The application goes over to the target, by the same protocol, and finds its offsets.
    _streams(pair.b, group, _JOIN, mirror)
    assert on(pair.b, list_groups)[group].kind == "streams"
    assert _offset(pair.b, group, mirror) == 10
    pair.a.commit(group, topic, 15)
    assert "in use on the target" in _keep(flow, _untouched)[group]
    assert _standing(flow, group).state == "active"
    assert _offset(pair.b, group, mirror) == 10
    _streams(pair.b, group, _LEAVE, mirror)
    assert _keep(flow, _untouched) == {}
    assert _offset(pair.b, group, mirror) == 15


def test_share_groups_are_named_with_the_reason(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    flow = _flow(pair, topic)
    copy(flow)
    group, unwanted = f"{topic}-g-share", f"{topic}-g-unwanted"
    for one in (group, unwanted):
        _share(pair.a, one, _JOIN, topic)
    assert on(pair.a, list_groups)[group].kind == "share"
    assert _keep(flow, _untouched) == {group: _standing(flow, group).text}
    found = _standing(flow, group)
    assert (found.state, found.synced, found.left_out) == ("share-group", False, False)
    assert "no committed offsets" in found.text
    assert "groups.exclude" in found.advice
    assert _standing(flow, unwanted).state == "group-excluded"
    states = {one.group: one.state for one in asyncio.run(look_at_groups(flow)).groups}
    assert (states[group], states[unwanted]) == ("share-group", "group-excluded")
    with pytest.raises(NoAnswer, match=f"has no consumer group {group}-else"):
        _standing(flow, f"{group}-else")
    assert asyncio.run(sync_now(flow)).written == []
    with properties.open("a") as file:
        file.write(f"groups = {topic}-g.*\ngroups.exclude = .*-unwanted\nsync.group.offsets.enabled = true\n")
    for arguments in ([], [group]):
        shown = in_process("groups", properties, "A->B", *arguments)
        assert shown.exit_code == 1, shown
        assert "share-group: it is a share group" in " ".join(shown.stdout.split())
    for one in (group, unwanted):
        _share(pair.a, one, _LEAVE, topic)
