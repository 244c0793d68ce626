"""`heliograph run --plan` and `heliograph topics`: previews that change nothing."""

import json
from pathlib import Path

from logs import Pair, some_records
from running.command import heliograph


def test_a_plan_says_what_would_be_done_and_does_nothing(pair: Pair, topic: str, properties: Path) -> None:
    pair.a.create(topic, partitions=2)
    pair.a.write(topic, some_records(25), partition=1)
    before = pair.a.topics(), pair.b.topics()
    shown = heliograph("run", properties, "--plan")
    assert shown.returncode == 0, shown.stderr
    assert f"create mirror A.{topic} with 2 partitions" in shown.stdout
    assert "copy 25 offsets of 1 topics" in shown.stdout
    assert (pair.a.topics(), pair.b.topics()) == before
    assert heliograph("run", properties, "--until-caught-up").returncode == 0
    pair.a.write(topic, some_records(5), partition=0)
    pair.a.configure(topic, retention_ms="777000000")
    (plan,) = json.loads(heliograph("run", properties, "--plan", "--json").stdout)
    assert (plan["create"], plan["internal"], plan["copy"]) == ({}, [], {topic: 5})
    assert plan["settings"] == {f"A.{topic}": {"retention.ms": "777000000"}}


def test_the_commands_for_internal_topics_are_those_that_are_missing(pair: Pair, properties: Path) -> None:
    text = properties.read_text().replace("clusters = A, B", "clusters = fresh, B")
    properties.write_text(text.replace("A.boot", "fresh.boot").replace("A->", "fresh->"))
    listed = heliograph("topics", properties, COLUMNS="200")
    assert listed.returncode == 0, listed.stderr
    assert "heliograph-ledger.fresh.internal" in listed.stdout
    commands = heliograph("topics", properties, "--commands").stdout.splitlines()
    assert (
        f"kafka-topics.sh --bootstrap-server {pair.b.bootstrap} --create --topic heliograph-ledger.fresh.internal "
        "--partitions 3 --replication-factor 1 --config compression.type=uncompressed "
        "--config message.timestamp.type=LogAppendTime --config cleanup.policy=compact,delete --config retention.ms=-1 "
        "--config retention.bytes=-1 --config segment.bytes=16777216 --config delete.retention.ms=3600000"
    ) in commands
    assert any("fresh.checkpoints.internal" in command for command in commands)
    assert heliograph("run", properties, "--until-caught-up").returncode == 0
    assert heliograph("topics", properties, "--commands").stdout == ""


def test_an_internal_topic_that_cannot_be_created_is_named_with_the_way_out(pair: Pair, properties: Path) -> None:
    """The broker rejects the name, as it would reject a principal without the right."""
    alias = "long" * 60
    text = properties.read_text().replace("clusters = A, B", f"clusters = {alias}, B")
    properties.write_text(text.replace("A.boot", f"{alias}.boot").replace("A->", f"{alias}->"))
    done = heliograph("run", properties, "--until-caught-up")
    assert done.returncode == 1
    assert f"internal topic heliograph-ledger.{alias}.internal cannot be created on B (INVALID_TOPIC" in done.stderr
    assert f"create it by hand: kafka-topics.sh --bootstrap-server {pair.b.bootstrap} --create" in done.stderr
