"""Which ACLs flows need, and what is lost without one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from heliograph.cli import app
from heliograph.control.principals import Principal, principals
from heliograph.control.required_acls import Client, Existing, Feature, names_of, needs
from heliograph.model.acl import GROUP, LITERAL, PREFIXED, READ, TOPIC, Grant, Resource, fewest, resources_of
from heliograph.model.flow import (
    HEARTBEAT,
    SOURCE,
    Cluster,
    ConnectOffsets,
    Flow,
    Groups,
    KeptOffsets,
    OffsetSyncs,
    TopicSync,
)
from heliograph.model.names import NameFilter
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from heliograph.model.secret import Secret
from heliograph.model.security import PLAIN, PasswordLogin, Sasl, Security, Tls

A, B = Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),))
FLOW = Flow(A, B, topics=NameFilter(("orders.*",)), groups=Groups(NameFilter(("shop",)), sync_every=60.0))
ONLY_COPYING = replace(
    FLOW,
    parts=frozenset({SOURCE}),
    heartbeats_replication=False,
    topic_sync=TopicSync(None, None),
    offset_syncs=OffsetSyncs(enabled=False),
)


def _principals(flow: Flow, existing: Existing | None = None) -> dict[str, Principal]:
    found = principals([(flow, needs(flow, names_of(flow, existing)))])
    return {f"{principal.cluster.alias} {principal.name}": principal for principal in found}


def _granted(flow: Flow, existing: Existing | None = None) -> dict[str, set[str]]:
    return {who: set(map(str, principal.grants())) for who, principal in _principals(flow, existing).items()}


@pytest.mark.parametrize(
    ("pattern", "name", "kind", "is_wider"),
    [
        ("orders", "orders", LITERAL, False),
        ("orders.v1", "orders.v1", LITERAL, False),
        (r"orders\.v1", "orders.v1", LITERAL, False),
        ("orders.*", "orders", PREFIXED, False),
        ("orders-.+", "orders-", PREFIXED, False),
        ("orders-(eu|us)", "orders-", PREFIXED, True),
        ("orders?", "order", PREFIXED, True),
        ("[a-z]+", "*", LITERAL, True),
        (".*-events", "*", LITERAL, True),
        (".*", "*", LITERAL, False),
    ],
)
def test_a_pattern_becomes_a_name_or_a_prefix(pattern: str, name: str, kind: str, is_wider: bool) -> None:
    named = resources_of(TOPIC, NameFilter((pattern,)))
    assert named.resources == (Resource(TOPIC, name, kind),)
    assert named.wider == ((pattern,) if is_wider else ())


def test_names_that_exist_take_the_place_of_patterns() -> None:
    names = NameFilter(("a|b", "c-[0-9]+", "z"), ("c-3", "z"))
    existing = ["a", "c-1", "c-3", "x", "z"]
    assert [resource.name for resource in resources_of(GROUP, names, existing).resources] == ["a", "b", "c-1"]


def test_what_others_imply_is_left_out() -> None:
    one, prefix, every = Resource(TOPIC, "a-1"), Resource(TOPIC, "a", PREFIXED), Resource(TOPIC, "*")
    assert fewest([Grant(one, "Describe"), Grant(one, "Read")]) == [Grant(one, "Read")]
    assert fewest([Grant(one, "Read"), Grant(prefix, "Read")]) == [Grant(prefix, "Read")]
    assert fewest([Grant(prefix, "Read"), Grant(every, "Write")]) == [Grant(every, "Write"), Grant(prefix, "Read")]
    assert not prefix.covers(every)
    assert not Resource(GROUP, "*").covers(one)


def test_a_flow_that_only_copies_needs_little() -> None:
    assert _granted(ONLY_COPYING) == {
        "A User:ANONYMOUS": {
            "Read on topic orders*",
            "DescribeConfigs on topic orders*",
            "Read on topic mm2-offset-syncs.B.internal",
        },
        "B User:ANONYMOUS": {
            *(f"{operation} on topic A.orders*" for operation in ("Create", "Alter", "AlterConfigs", "Read", "Write")),
            *(
                f"{operation} on topic heliograph-ledger.A.internal"
                for operation in ("Create", "DescribeConfigs", "Read", "Write", "Delete")
            ),
            *(
                f"{operation} on topic heliograph-signals.A.internal"
                for operation in ("Create", "DescribeConfigs", "Read", "Write")
            ),
            "Read on topic mm2-offsets.A.internal",
            "Write on topic mm2-offsets.A.internal",
            "Describe on group A-mm2",
        },
    }


def test_a_flow_that_writes_heartbeats_only_needs_one_topic() -> None:
    assert _granted(replace(FLOW, parts=frozenset({HEARTBEAT}))) == {
        "B User:ANONYMOUS": {f"{operation} on topic heartbeats" for operation in ("Create", "DescribeConfigs", "Write")}
    }


def test_each_feature_adds_its_own() -> None:
    def more(flow: Flow) -> set[str]:
        before, after = _granted(ONLY_COPYING), _granted(flow)
        return {f"{who[0]}: {grant}" for who in after for grant in after[who] - before[who]}

    assert more(replace(ONLY_COPYING, topic_sync=TopicSync(600.0, None))) == set()
    assert more(replace(ONLY_COPYING, topic_sync=TopicSync(None, 600.0))) == {
        "A: Describe on the cluster",
        "B: Alter on the cluster",
    }
    assert more(replace(ONLY_COPYING, offset_syncs=OffsetSyncs())) == {
        f"A: {operation} on topic mm2-offset-syncs.B.internal" for operation in ("Create", "DescribeConfigs", "Write")
    }
    assert more(replace(ONLY_COPYING, kept_offsets=KeptOffsets(NameFilter(("orders-kept",))))) == {
        "B: Delete on topic A.orders-kept",
        "B: Write on transactional-id heliograph.A->B.*",
    }
    assert more(replace(ONLY_COPYING, connect_offsets=ConnectOffsets("offsets", "copy", "workers", "states"))) == {
        "B: Read on topic offsets",
        "B: Write on topic offsets",
        "B: Describe on group workers",
        "B: Read on topic states",
    }
    groups = replace(ONLY_COPYING, parts=FLOW.parts - {HEARTBEAT}, groups=replace(FLOW.groups, sync_every=None))
    checkpoints = {f"B: {op} on topic A.checkpoints.internal" for op in ("Create", "DescribeConfigs", "Read", "Write")}
    assert more(groups) == {"A: Describe on group shop", *checkpoints}
    synced = replace(groups, groups=replace(FLOW.groups, deletes=True))
    assert more(synced) - more(groups) == {"B: Read on group shop", "B: Delete on group shop"}
    assert "B: Write on topic heartbeats" in more(replace(ONLY_COPYING, parts=frozenset({SOURCE, HEARTBEAT})))


def test_topics_keep_their_names_with_the_identity_policy() -> None:
    flow = replace(ONLY_COPYING, policy=IdentityReplicationPolicy("A"), heartbeats_replication=True)
    granted = _granted(flow)["B User:ANONYMOUS"]
    assert {"Write on topic orders*", "Write on topic A.heartbeats"} <= granted
    every = replace(flow, topics=NameFilter((".*",)))
    assert "Write on topic *" in _granted(every)["B User:ANONYMOUS"]
    assert "Write on topic A.*" in _granted(replace(every, policy=FLOW.policy))["B User:ANONYMOUS"]


def test_the_aliases_of_connectors_are_in_the_names_of_topics() -> None:
    flow = replace(FLOW, connector_aliases=("x", "y"))
    assert "Write on topic mm2-offset-syncs.y.internal" in _granted(flow)["A User:ANONYMOUS"]
    granted = _granted(flow)["B User:ANONYMOUS"]
    assert {"Write on topic x.orders*", "Write on topic x.checkpoints.internal"} <= granted
    assert {"Write on topic heliograph-ledger.A.internal", "Read on topic mm2-offsets.A.internal"} <= granted


def test_topics_keep_their_names_with_an_empty_alias_and_an_empty_separator() -> None:
    flow = replace(ONLY_COPYING, connector_aliases=("", "B"), policy=DefaultReplicationPolicy(""))
    assert "Write on topic orders*" in _granted(flow)["B User:ANONYMOUS"]
    assert "Write on topic *" in _granted(replace(flow, topics=NameFilter((".*",))))["B User:ANONYMOUS"]


def test_existing_names_are_allowed_one_by_one() -> None:
    existing = Existing(["orders-1", "orders.internal", "heartbeats", "X.heartbeats", "other"], ["shop", "x"], [])
    granted = _granted(FLOW, existing)["A User:ANONYMOUS"]
    assert {grant for grant in granted if grant.startswith("Read on topic")} == {
        "Read on topic orders-1",
        "Read on topic heartbeats",
        "Read on topic X.heartbeats",
        "Read on topic mm2-offset-syncs.B.internal",
    }


def test_the_intervals_of_an_earlier_version_are_read_where_they_exist() -> None:
    existing = Existing([], [], ["heliograph-intervals.A.internal"])
    assert "Read on topic heliograph-intervals.A.internal" in _granted(FLOW, existing)["B User:ANONYMOUS"]


def test_old_brokers_ask_for_one_more() -> None:
    table = needs(FLOW, names_of(FLOW), idempotent_write=True)
    assert any(need.grant.operation == "IdempotentWrite" for need in table)
    assert not any(need.grant.operation == "IdempotentWrite" for need in needs(FLOW, names_of(FLOW)))


def test_leases_that_log_in_as_others_need_less() -> None:
    reader, writer = (
        replace(cluster, security=Security(None, Sasl(PLAIN, PasswordLogin(name, Secret("x")))))
        for cluster, name in ((A, "reader"), (B, "writer"))
    )
    found = _granted(replace(FLOW, reader=reader, writer=writer))
    assert found["A User:reader"] == {"Read on topic heartbeats", "Read on topic orders*"}
    assert "Alter on topic A.orders*" not in found["B User:writer"]
    assert "Write on topic A.orders*" in found["B User:writer"]
    assert "Write on topic A.orders*" not in found["B User:ANONYMOUS"]


def test_a_principal_that_only_brokers_know_has_a_placeholder() -> None:
    secured = replace(FLOW, source=replace(A, security=Security(Tls())))
    assert _principals(secured).keys() == {"A User:MIRROR_ON_A", "B User:ANONYMOUS"}


def test_members_need_one_more() -> None:
    table = needs(FLOW, names_of(FLOW), members_group="heliograph.A.B")
    (more,) = set(table) - set(needs(FLOW, names_of(FLOW)))
    assert (more.client, more.feature) == (Client.TARGET_DRIVER, Feature.MEMBERSHIP)
    assert more.grant == Grant(Resource(GROUP, "heliograph.A.B"), READ)


def test_what_is_lost_without_one_of_them() -> None:
    target = _principals(FLOW)["B User:ANONYMOUS"]

    def lost(resource: Resource, operation: str) -> list[Feature]:
        return target.lost_without(Grant(resource, operation))

    mirrors = Resource(TOPIC, "A.orders", PREFIXED)
    assert lost(mirrors, "Create") == [Feature.NEW_MIRRORS]
    assert lost(mirrors, "Write") == [Feature.COPYING]
    assert lost(mirrors, "AlterConfigs") == [Feature.LARGE_BATCHES, Feature.CONFIGS]
    assert lost(Resource(GROUP, "shop"), "Read") == [Feature.GROUP_OFFSETS]
    assert lost(Resource(TOPIC, "heartbeats"), "Write") == [Feature.HEARTBEATS]
    for grant in target.grants():
        assert target.lost_without(grant), grant


FILE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092,c:9092
A->B.enabled = true
A->B.topics = orders.*, pay(ment)?s
B->A.emit.heartbeats.enabled = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def _run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["acls", *map(str, arguments)])


def test_the_command_prints_commands(file: Path) -> None:
    done = _run(file, "A->B", "--principal", "User:mirror")
    assert done.exit_code == 0
    assert (
        "kafka-acls.sh --bootstrap-server b:9092,c:9092 --add --allow-principal User:mirror --allow-host '*' "
        "--operation Alter --operation AlterConfigs --operation Create --operation Read --operation Write "
        "--topic A.orders --resource-pattern-type prefixed\n" in done.stdout
    )
    assert "note: no ACL can say pay(ment)?s" in done.stderr


def test_the_command_prints_kafka_users(file: Path) -> None:
    source, target = yaml.safe_load_all(_run(file, "--format", "strimzi", "--principal", "User:mirror").stdout)
    assert (source["kind"], source["metadata"]["name"]) == ("KafkaUser", "mirror")
    assert target["metadata"]["labels"] == {"strimzi.io/cluster": "B"}
    resources = [acl["resource"] for acl in target["spec"]["authorization"]["acls"]]
    assert {"type": "topic", "name": "A.orders", "patternType": "prefix"} in resources
    assert {"type": "cluster"} in resources


def test_the_command_prints_json(file: Path) -> None:
    rows = json.loads(_run(file, "--json").stdout)
    assert rows == json.loads(_run(file, "--format", "json").stdout)
    (row,) = [row for row in rows if (row["name"], row["operation"]) == ("A.checkpoints.internal", "Write")]
    assert row["lost_without_it"] == ["group offsets are not translated"]
    assert (row["cluster"], row["pattern"], row["host"], row["optional"]) == ("B", "literal", "*", False)


def test_what_cannot_be_answered_ends_with_status_2(file: Path) -> None:
    assert "there are A->B" in _run(file, "C").stderr
    assert _run(file, "C").exit_code == 2
    assert "such as User:mirror" in _run(file, "--principal", "mirror").stderr
