"""The oldest source: Kafka 1.1 with ZooKeeper, no topic ids, no leader epochs in fetches."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from copying.lease import copy, only
from heliograph.sandbox import ClusterSpec, Sandbox
from logs import Log, Pair, some_records


@pytest.fixture(scope="module")
def old() -> Iterator[Log]:
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"old": ClusterSpec(version="1.1.1")})
        yield Log(cluster.bootstrap)


@pytest.mark.parametrize("codec", [0, 1, 2, 3])  # zstd came with 2.1
def test_records_of_a_1_1_cluster_arrive_as_they_are(old: Log, pair: Pair, topic: str, codec: int) -> None:
    old.create(topic, partitions=2)
    for partition in range(2):
        old.write(topic, some_records(300), partition, codec=codec)
    flow = only(replace(pair.flow(), source=replace(old.cluster, alias="old")), topic)
    assert copy(flow).refusals == ()
    old.write(topic, some_records(20), partition=1, codec=codec)
    assert copy(flow).records == 20
    for partition in range(2):
        assert pair.b.read(f"old.{topic}", partition) == old.read(topic, partition)
        assert pair.b.boundaries(f"old.{topic}", partition) == old.boundaries(topic, partition)
