"""`heliograph groups`: where groups stand, and every reason why one is not synced, made to happen on real brokers."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka.admin import ACLOperation, ResourceType

from access import GUARDED, deny
from copying.lease import copy, only
from heliograph.control.preserve_check import why_not_preserved
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow, Groups
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.names import NameFilter
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.service.group_report import (
    FlowGroups,
    GroupPartition,
    GroupStanding,
    NoAnswer,
    look_at_groups,
    sync_now,
)
from heliograph.wire.connection import Connection
from heliograph.wire.consumer_groups import Committed, committed_offsets
from heliograph.wire.metadata import id_text
from logs import JOINS_SOON, Log, Pair, on, some_records, until
from running.command import in_process


def _flow(pair: Pair, topic: str) -> Flow:
    names = NameFilter((f"{topic}-.*",), (".*-unwanted",))
    flow = replace(only(pair.flow(), topic), groups=Groups(names, 600.0, 60.0, 60.0, 1))
    return replace(flow, topics=NameFilter((f"{topic}.*",), (".*-secret",)))


def _look(flow: Flow, group: str | None = None) -> FlowGroups:
    return asyncio.run(look_at_groups(flow, group))


def _standing(flow: Flow, group: str) -> GroupStanding:
    (found,) = _look(flow, group).groups
    return found


def _row(flow: Flow, group: str) -> GroupPartition:
    (row,) = _standing(flow, group).partitions
    return row


@contextmanager
def _member(log: Log, group: str, topic: str) -> Iterator[None]:
    consumer: Any = KafkaConsumer(
        bootstrap_servers=log.bootstrap, group_id=group, client_id="app", enable_auto_commit=False, **JOINS_SOON
    )
    try:
        consumer.subscribe([topic])
        until(lambda: consumer.poll(timeout_ms=100) or consumer.assignment(), every=0)
        yield
    finally:
        consumer.close()


def test_positions_lags_and_reasons_on_both_sides(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    pair.a.transaction(topic, 5, commit=False)  # so that the mirror's offsets are not the source's
    pair.a.write(topic, some_records(20))
    flow, mirror = _flow(pair, topic), f"A.{topic}"
    copy(flow)
    due, ahead, used, later = (f"{topic}-{name}" for name in ("due", "ahead", "used", "later"))
    for group in (due, ahead, used):
        pair.a.commit(group, topic, 30)
    pair.b.commit(due, mirror, 3)
    pair.b.commit(ahead, mirror, 37)
    row = _row(flow, due)
    assert (row.source_offset, row.source_end, row.source_lag) == (30, 46, 16)
    assert (row.mirror_offset, row.target_offset, row.mirror_end, row.mirror_lag) == (24, 3, 40, 16)
    assert (row.state, "within 60 s" in row.advice) == ("due", True)
    row = _row(flow, ahead)
    assert (row.state, row.mirror_offset, row.target_offset) == ("ahead", 24, 37)
    assert row.text == "its offset on B is 13 ahead: it was read or set there"
    with _member(pair.b, used, mirror):
        row = _row(flow, used)
    assert (row.state, row.advice) == ("active", "stop its members on B")
    assert row.text.startswith("in use on B (state Stable, 1 member: app on 127.0.0.1")

    # A group that has read what is not copied yet, and one that stands behind a marker where nothing is missing.
    pair.a.write(topic, some_records(10))
    pair.a.commit(later, topic, 50)
    row = _row(flow, later)
    assert (row.state, row.mirror_offset, row.mirror_end) == ("not-copied", 40, 40)
    assert row.advice.startswith("wait for copying: 4 records to go")
    copy(flow)
    pair.a.transaction(topic, 3, commit=False)
    end = pair.a.bounds(topic)[1]
    pair.a.commit(later, topic, end)
    assert (_row(flow, later).state, _row(flow, later).mirror_offset) == ("due", 50)

    # And syncing does what was said, and nothing else.
    assert set(asyncio.run(sync_now(flow)).written) == {due, used, later}
    assert {group: _row(flow, group).state for group in (due, ahead, used, later)} == {
        due: "synced",
        ahead: "ahead",
        used: "synced",
        later: "synced",
    }


def test_what_the_file_leaves_out_is_named_with_the_pattern(pair: Pair, topic: str) -> None:
    for name in (topic, f"{topic}-secret"):
        pair.a.create(name)
        pair.a.write(name, some_records(5))
    flow = _flow(pair, topic)
    copy(flow)
    group, unwanted, other = f"{topic}-g", f"{topic}-unwanted", f"x-{topic}"
    for name in (group, unwanted, other):
        pair.a.commit(name, topic, 3)
    pair.a.commit(group, f"{topic}-secret", 3)
    standing = _standing(flow, group)
    assert [(row.topic, row.state) for row in standing.partitions] == [
        (topic, "due"),
        (f"{topic}-secret", "topic-excluded"),
    ]
    assert standing.partitions[1].text == "excluded by topics.exclude, pattern .*-secret"
    assert standing.state == "due"
    found = _standing(flow, unwanted)
    assert (found.state, found.text) == ("group-excluded", "excluded by groups.exclude, pattern .*-unwanted")
    assert (found.left_out, found.partitions[0].mirror_offset) == (True, 3)
    assert _standing(flow, other).text == f"not picked by groups ({topic}-.*)"
    elsewhere = replace(flow, topics=NameFilter(("nothing",)))
    assert _row(elsewhere, unwanted).state == "group-excluded"
    assert _standing(elsewhere, group).partitions[0].text == "not picked by topics (nothing)"
    assert asyncio.run(sync_now(flow, unwanted)).written == []

    off = replace(flow, groups=replace(flow.groups, sync_every=None))
    row = _standing(off, group).partitions[0]
    assert (row.state, row.text) == ("switched-off", "sync.group.offsets is switched off")
    assert asyncio.run(sync_now(off, group)).written == [group]  # on demand all the same
    assert _standing(off, group).state == "synced"


def test_mirrors_topics_and_offsets_that_are_not_there(pair: Pair, topic: str) -> None:
    names = {kind: f"{topic}-{kind}" for kind in ("gone", "taken", "new")}
    for name in names.values():
        pair.a.create(name)
        pair.a.write(name, some_records(20))
    flow = _flow(pair, topic)
    copied = replace(flow, topics=NameFilter((names["gone"],)))
    copy(copied)

    # Copied by another tool up to 12, and taken over from there.
    pair.b.create(f"A.{names['taken']}")
    pair.b.write(f"A.{names['taken']}", some_records(12))

    async def take_over(client: Any) -> None:
        mirror = (await client.metadata([f"A.{names['taken']}"])).topics[f"A.{names['taken']}"]
        source = on_source.topics[names["taken"]]
        interval = Interval(12, 15, 0, id_text(source.id))
        await Ledger(client, "A").append([JournalEntry((names["taken"], 0), id_text(mirror.id), (interval,))])

    on_source = on(pair.a, lambda client: client.metadata([names["taken"]]))
    on(pair.b, take_over)
    groups = {kind: f"{topic}-{kind}" for kind in names}
    for kind, name in names.items():
        pair.a.commit(groups[kind], name, 4)
    pair.a.delete_before(names["gone"], 0, 10)
    row = _row(flow, groups["gone"])  # the mirror still has it, but on the source nobody could read it any more
    assert (row.state, row.mirror_offset, row.source_lag) == ("due", 10, 16)
    asyncio.run(sync_now(flow, groups["gone"]))
    row = _row(flow, groups["gone"])
    assert (row.state, row.target_offset) == ("synced", 10)
    assert row.text == "offset 4 is deleted, A starts at 10 now: a consumer there goes by its auto.offset.reset"

    row = _row(flow, groups["taken"])  # among what another tool has copied; its records tell nothing here
    assert (row.state, row.mirror_offset) == ("due", 0)
    assert "it would read some records again" in row.text
    pair.a.commit(groups["taken"], names["taken"], 17)
    assert (_row(flow, groups["taken"]).mirror_offset, _row(flow, groups["taken"]).state) == (12, "not-copied")

    assert (_row(flow, groups["new"]).state, _row(flow, groups["new"]).mirror_end) == ("no-mirror", None)
    pair.b.create(f"A.{names['new']}")
    assert _row(flow, groups["new"]).state == "nothing-copied"


@pytest.fixture(scope="module")
def guarded(pair: Pair) -> Iterator[Log]:
    """A cluster where everybody may do what no rule is about."""
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"G": ClusterSpec(settings=GUARDED, fast_start=True)})
        yield Log(cluster.bootstrap)


def test_what_is_not_allowed_is_named(pair: Pair, guarded: Log, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    flow = _flow(Pair(pair.a, guarded), topic)
    copy(flow)
    unseen, unset, fine = (f"{topic}-{name}" for name in ("unseen", "unset", "fine"))
    for group in (unseen, unset, fine):
        pair.a.commit(group, topic, 3)
    deny(guarded, ResourceType.GROUP, unseen, ACLOperation.DESCRIBE)
    deny(guarded, ResourceType.GROUP, unset, ACLOperation.READ)
    row = _row(flow, unseen)
    assert (row.state, row.advice) == ("no-permission", f"allow DESCRIBE on group {unseen} on B")
    assert "B answers GROUP_AUTHORIZATION_FAILED" in row.text
    row = _row(flow, unset)
    assert (row.state, row.text) == ("no-permission", f"B does not allow READ on group {unset}")
    round_ = asyncio.run(sync_now(flow))
    assert round_.written == [fine]
    assert "GROUP_AUTHORIZATION_FAILED" in round_.untouched[unset]

    other = f"{topic}-other"
    pair.a.commit(other, topic, 3)
    deny(guarded, ResourceType.TOPIC, f"A.{topic}", ACLOperation.READ)
    row = _row(flow, other)
    assert (row.state, row.text) == ("no-permission", f"B does not allow READ on topic A.{topic}")
    deny(guarded, ResourceType.TOPIC, f"A.{topic}", ACLOperation.DESCRIBE)
    assert _row(flow, other).text == f"B says TOPIC_AUTHORIZATION_FAILED of topic A.{topic}"

    # And on the source.
    guarded.create(topic)
    guarded.write(topic, some_records(5))
    back = _flow(Pair(guarded, pair.b), topic)
    copy(back)
    guarded.commit(f"{topic}-mine", topic, 3)
    deny(guarded, ResourceType.GROUP, f"{topic}-mine", ACLOperation.DESCRIBE)
    found = _standing(back, f"{topic}-mine")
    assert (found.state, found.partitions) == ("no-permission", ())
    assert "A answers GROUP_AUTHORIZATION_FAILED" in found.text


def test_a_mirror_whose_records_may_not_be_deleted_cannot_keep_offsets(pair: Pair, guarded: Log, topic: str) -> None:
    flow, mirror = Pair(pair.a, guarded).flow(), f"A.{topic}"
    guarded.create(mirror)
    assert on(guarded, lambda client: why_not_preserved(flow, client, [mirror])) == {}
    deny(guarded, ResourceType.TOPIC, mirror, ACLOperation.DELETE)
    problems = on(guarded, lambda client: why_not_preserved(flow, client, [mirror]))
    assert f"records of {mirror} may not be deleted" in problems[mirror]


def test_looking_costs_the_same_for_few_and_many_and_writes_nothing(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    flow = _flow(pair, topic)
    copy(flow)
    sent: list[str] = []
    request = Connection.request

    async def counted(self: Connection, message: Any, *more: Any, **options: Any) -> Any:
        sent.append(type(message).__name__)
        return await request(self, message, *more, **options)

    monkeypatch.setattr(Connection, "request", counted)

    def cost() -> list[str]:
        sent.clear()
        found = {standing.group for standing in _look(flow).groups}
        assert groups <= found
        return list(sent)

    groups = {f"{topic}-0"}
    pair.a.commit(f"{topic}-0", topic, 4)
    few = cost()
    for number in range(1, 40):
        pair.a.commit(f"{topic}-{number}", topic, number % 10)
        groups.add(f"{topic}-{number}")
    many = cost()
    assert len(few) == len(many) <= 40
    assert {"OffsetCommitRequest", "ProduceRequest", "CreateTopicsRequest"}.isdisjoint(many)


def test_the_command_shows_it_in_80_columns_and_as_json(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic, partitions=2)
    for partition in range(2):
        pair.a.write(topic, some_records(20), partition)
    group = f"{topic}-g"
    with properties.open("a") as file:
        file.write(f"groups = {topic}-.*\nsync.group.offsets.enabled = true\n")
    copy(_flow(pair, topic))
    pair.a.commit(group, topic, 7)
    pair.b.commit(group, f"A.{topic}", 9)
    shown = in_process("groups", properties, "A->B")
    assert shown.exit_code == 1, shown
    assert max(map(len, shown.stdout.splitlines())) <= 80
    text = " ".join(shown.stdout.split())
    assert "ahead: its offset on B is 2 ahead: it was read or set there" in text
    assert "0 of 1 group synced" in text
    assert "left out: not picked by groups" in text
    shown = in_process("groups", properties, group)
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "what would change it: nothing: offsets are never moved back" in shown.stdout

    pair.a.commit(group, topic, 12)
    seen = in_process("groups", properties, "A->B", group, "--sync", "--json")
    assert seen.exit_code == 0, seen
    assert json.loads(seen.stdout) == [
        {
            "flow": "A->B",
            "groups": [
                {
                    "group": group,
                    "state": "synced",
                    "text": "",
                    "advice": "",
                    "partitions": [
                        {
                            "topic": topic,
                            "mirror": f"A.{topic}",
                            "partition": 0,
                            "source_offset": 12,
                            "source_end": 20,
                            "source_lag": 8,
                            "mirror_offset": 12,
                            "target_offset": 12,
                            "mirror_end": 20,
                            "mirror_lag": 8,
                            "state": "synced",
                            "text": "",
                            "advice": "",
                        }
                    ],
                }
            ],
        }
    ]
    there = on(pair.b, lambda client: committed_offsets(client, [group]))
    assert there[group] == {(f"A.{topic}", 0): Committed(12)}


def test_names_that_are_not_there_are_answered_with_the_nearest(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic)
    pair.a.commit(f"{topic}-billing", topic, 0)
    copy(_flow(pair, topic))
    for arguments, said in (
        ((f"{topic}-biling",), f"A has no consumer group {topic}-biling; did you mean {topic}-billing?"),
        (("A->C",), "has no flow A->C; did you mean A->B?"),
        (("A-",), "write the flow in quotes, 'A->B'"),
    ):
        done = in_process("groups", properties, *arguments)
        assert (done.exit_code, said in done.stderr) == (2, True), done
    never = replace(_flow(pair, topic), source=replace(pair.flow().source, alias="Never"))
    with pytest.raises(NoAnswer, match="Never->B has never run"):
        _look(never, f"{topic}-billing")


def test_without_the_right_to_transactions_offsets_cannot_be_kept(pair: Pair, guarded: Log, topic: str) -> None:
    flow = Pair(pair.a, guarded).flow()
    deny(guarded, ResourceType.TRANSACTIONAL_ID, "heliograph.A->B.check", ACLOperation.WRITE)
    text = on(guarded, lambda client: why_not_preserved(flow, client, ["mirror"]))["mirror"]
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in text
    assert "--transactional-id 'heliograph.A->B.' --resource-pattern-type prefixed" in text
