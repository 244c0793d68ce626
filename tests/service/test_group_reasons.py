"""Why a group is not synced: a state, a sentence and an advice for every case; without brokers."""

from dataclasses import replace
from typing import Any

import pytest

from heliograph.control import group_translation
from heliograph.control.group_sync import TargetGroups
from heliograph.control.group_translation import NotTranslatable, TranslatedOffset
from heliograph.model.flow import SOURCE, Cluster, Flow, Groups
from heliograph.model.names import NameFilter
from heliograph.model.partitions import MirrorPartition
from heliograph.service.group_reasons import ORDER, Reason, Rights, reason
from heliograph.service.partition_position import Missing, PartitionPosition
from heliograph.wire.consumer_groups import DEAD, EMPTY, Committed, GroupDescription
from heliograph.wire.errors import GROUP_AUTHORIZATION_FAILED, BrokerError, Unreachable, WireError

FLOW = Flow(
    Cluster("A", (("a", 9092),)),
    Cluster("B", (("b", 9092),)),
    groups=Groups(NameFilter((".*",)), 60.0, 60.0, 60.0),
)
PARTITION = MirrorPartition("orders", "A.orders", 0)
MIRROR = ("A.orders", 0)


def explain(
    answer: int | NotTranslatable = 24,
    *,
    source_offset: int = 30,
    early: str = "",
    source_start: int = 0,
    position: int = 46,
    missing: Missing | WireError | None = None,
    state: str = EMPTY,
    on_target: int | WireError | None = None,
    mirror_end: int | WireError = 40,
    flow: Flow = FLOW,
    description: GroupDescription | None = None,
    may_write: bool | None = True,
) -> Reason:
    """A group that has committed 30 on the source, which is 24 in the mirror."""
    translated = TranslatedOffset("billing", "orders", 0, Committed(source_offset), answer, 40, early)
    at = PartitionPosition(PARTITION, source_start, 46, 0, 40, position)
    committed: Any = (
        on_target if isinstance(on_target, WireError) else {} if on_target is None else {MIRROR: Committed(on_target)}
    )
    seen = TargetGroups({"billing": state}, {"billing": committed}, {MIRROR: mirror_end})
    rights = Rights({} if description is None else {"billing": description}, {"A.orders": may_write})
    return reason(flow, translated, at, missing, seen, rights)


NO_SYNC = replace(FLOW, groups=replace(FLOW.groups, sync_every=None))
NO_CHECKPOINTS = replace(FLOW, groups=replace(FLOW.groups, checkpoints_every=None))
DELETED = "offset 30 is deleted, A starts at 35 now: a consumer there goes by its auto.offset.reset"


@pytest.mark.parametrize(
    ("found", "state", "text", "advice"),
    [
        (explain(on_target=24), "synced", "", ""),
        (explain(on_target=24, source_start=35), "synced", DELETED, ""),
        (explain(on_target=24, early="so"), "synced", "it would read some records again: so", ""),
        (
            explain(state=DEAD),
            "due",
            "the next sync writes it",
            "wait: the running flow syncs within 60 s; or use --sync now",
        ),
        (
            explain(on_target=50),
            "due",
            "the next sync writes it",
            "wait: the running flow syncs within 60 s; or use --sync now",
        ),
        (
            explain(on_target=37),
            "ahead",
            "its offset on B is 13 ahead: it was read or set there",
            "nothing: offsets are never moved back",
        ),
        (
            explain(40, source_offset=50, position=46, missing=Missing(46, -1), on_target=40),
            "not-copied",
            "4 records that it has read on A are not copied yet",
            "wait for copying: 4 records to go; until then its offset is the mirror's end",
        ),
        (
            explain(state="Stable", description=GroupDescription(("app on 10.0.0.1",), True)),
            "active",
            "in use on B (state Stable, 1 member: app on 10.0.0.1)",
            "stop its members on B",
        ),
        (
            explain(state="Stable", description=GroupDescription(("a", "b", "c", "d", "e"), True)),
            "active",
            "in use on B (state Stable, 5 members: a, b, c and 2 more)",
            "stop its members on B",
        ),
        (
            explain(on_target=BrokerError(GROUP_AUTHORIZATION_FAILED)),
            "no-permission",
            "B answers GROUP_AUTHORIZATION_FAILED to a request for its offsets",
            "allow DESCRIBE on group billing on B",
        ),
        (
            explain(on_target=Unreachable("b:9092 is gone")),
            "unreadable",
            "its offsets on B cannot be read: b:9092 is gone",
            "check the brokers of B",
        ),
        (
            explain(description=GroupDescription((), False)),
            "no-permission",
            "B does not allow READ on group billing",
            "allow it on B",
        ),
        (explain(may_write=False), "no-permission", "B does not allow READ on topic A.orders", "allow it on B"),
        (
            explain(flow=replace(FLOW, parts=frozenset({SOURCE}))),
            "switched-off",
            "this flow runs without its checkpoint part",
            "add checkpoint to heliograph.parts",
        ),
        (
            explain(flow=NO_SYNC),
            "switched-off",
            "sync.group.offsets is switched off",
            "set sync.group.offsets.enabled = true, and its interval above 0",
        ),
        (
            explain(flow=NO_CHECKPOINTS),
            "switched-off",
            "emit.checkpoints is switched off",
            "set emit.checkpoints.enabled = true, and its interval above 0",
        ),
        (
            explain(NotTranslatable(group_translation.BEFORE_LEDGER, "so")),
            "before-ledger",
            "so",
            "let the group read on A up to the records that Heliograph has copied",
        ),
        (
            explain(NotTranslatable(group_translation.BEFORE_LEDGER, "so"), source_start=35),
            "source-offset-gone",
            DELETED,
            "let the group read on A, or set its offset there",
        ),
        (
            explain(NotTranslatable(group_translation.NO_MIRROR, "so")),
            "no-mirror",
            "so",
            "run the flow, which creates it",
        ),
        (explain(NotTranslatable(group_translation.NOTHING_COPIED, "so")), "nothing-copied", "so", "run the flow"),
        (
            explain(NotTranslatable(group_translation.TOPIC_GONE, "so")),
            "topic-gone",
            "so",
            "nothing: the group keeps its offset on B",
        ),
        (explain(NotTranslatable(group_translation.UNREADABLE, "so")), "unreadable", "so", "check the brokers of B"),
    ],
)
def test_the_reason(found: Reason, state: str, text: str, advice: str) -> None:
    assert found == Reason(state, text, advice)
    assert state in ORDER
