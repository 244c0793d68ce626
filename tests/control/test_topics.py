"""Which mirrors are created and grown, and with which settings."""

import asyncio
from dataclasses import replace

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from copying.lease import copy, only, prepare
from heliograph.control.config_sync import new_mirror_configs
from heliograph.control.topic_sync import TopicSyncResult, plan, sync_topics, wanted_partitions
from heliograph.model.flow import Cluster, Flow
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.metadata import NO_ID, Topic
from heliograph.wire.topic_requests import ConfigEntry
from logs import Pair, some_records, until

_FLOW = Flow(Cluster("A", (("h", 1),)), Cluster("B", (("h", 1),)))


def _topics(**partitions: int) -> dict[str, Topic]:
    return {
        name.replace("__", "."): Topic(name.replace("__", "."), NO_ID, False, dict.fromkeys(range(count), 1))
        for name, count in partitions.items()
    }


def _synced(flow: Flow) -> TopicSyncResult:
    async def main() -> TopicSyncResult:
        source, target = ClusterClient(flow.source), ClusterClient(flow.target)
        try:
            await asyncio.gather(source.connect(), target.connect())
            return await sync_topics(flow, source, target, (await source.metadata(None)).topics)
        finally:
            source.close()
            target.close()

    return asyncio.run(main())


def test_missing_mirrors_are_created_and_small_ones_grown() -> None:
    todo = plan(_FLOW, _topics(new=3, grown=5, same=2), _topics(A__grown=4, A__same=2, other=1))
    assert todo.mirrored == ("grown", "new", "same")
    assert todo.create == ("new",)
    assert todo.grow == {"A.grown": 5}


def test_a_mirror_with_more_partitions_than_its_source_is_left_alone() -> None:
    assert plan(_FLOW, _topics(t=2), _topics(A__t=9)).grow == {}


def test_internal_and_returning_topics_are_not_mirrored() -> None:
    source = _topics(a=1, b=1, B__back=1) | {"x.internal": Topic("x.internal", NO_ID, False, {0: 1})}
    source["__consumer_offsets"] = Topic("__consumer_offsets", NO_ID, True, {0: 1})
    assert plan(_FLOW, source, {}).mirrored == ("a", "b")


def test_a_mirror_gets_the_sources_settings_but_keeps_times_and_compression() -> None:
    own = {
        "retention.ms": "5",
        "min.insync.replicas": "2",
        "message.timestamp.type": "LogAppendTime",
        "compression.type": "zstd",
    }
    configs = new_mirror_configs(_FLOW.topic_sync, {name: ConfigEntry(name, value, 1) for name, value in own.items()})
    assert configs["retention.ms"] == "5"
    assert "min.insync.replicas" not in configs
    assert configs["message.timestamp.type"] == "CreateTime"
    assert configs["compression.type"] == "producer"


def test_mirrors_on_a_real_broker_have_name_partitions_and_settings(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=3, retention_ms="123456789", segment_bytes="2000000")
    flow = only(pair.flow(), topic)
    asyncio.run(prepare(flow))
    until(lambda: pair.b.partitions(f"A.{topic}") == 3)  # a broker shows a change after it has answered
    pair.a.grow(topic, 5)
    asyncio.run(prepare(flow))
    until(lambda: pair.b.partitions(f"A.{topic}") == 5)
    assert _synced(flow).too_wide == {}
    pair.b.grow(f"A.{topic}", 7)
    assert _synced(flow) == TopicSyncResult({topic: 5}, {}, {topic: 7})
    admin = KafkaAdminClient(bootstrap_servers=pair.b.bootstrap)
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, f"A.{topic}")])
    admin.close()
    assert "123456789" in str(described)
    assert "2000000" in str(described)


def test_mirrors_have_at_least_the_partitions_that_are_asked_for() -> None:
    flow = replace(_FLOW, least_partitions=4)
    source_topics = _topics(few=2, many=6, grown=1)
    todo = plan(flow, source_topics, _topics(A__grown=3))
    assert (todo.create, todo.grow) == (("few", "many"), {"A.grown": 4})
    assert [wanted_partitions(flow, source_topics[name]) for name in ("few", "many")] == [4, 6]


def test_the_partitions_that_only_the_mirror_has_stay_empty(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=1)
    pair.a.write(topic, some_records(30))
    flow = replace(only(pair.flow(), topic), least_partitions=3)
    assert copy(flow).records == 30
    assert pair.b.partitions(f"A.{topic}") == 3
    assert [pair.b.bounds(f"A.{topic}", partition)[1] for partition in range(3)] == [30, 0, 0]
