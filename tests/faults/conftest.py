"""Clusters for the tests of this package. Files that share them run in one process, see `tests/distribution.py`."""

from collections.abc import Iterator

import pytest

from faults.topics import RACKS, Clusters
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from logs import Log, Pair


@pytest.fixture(scope="package")
def threes() -> Iterator[Clusters]:
    with Sandbox() as sandbox:
        settings = {"min.insync.replicas": "1", "log.cleaner.backoff.ms": "300"}
        # For clients that say in which rack they are; leaders serve all others.
        settings["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
        spec = ClusterSpec(brokers=3, settings=settings, fast_start=True, heap_mb=192, racks=RACKS)
        a, b = sandbox.start({"A": spec, "B": spec})
        yield a, b


@pytest.fixture(scope="package")
def both(threes: Clusters) -> Pair:
    return Pair(*(Log(cluster.bootstrap) for cluster in threes))


@pytest.fixture(scope="package")
def olds() -> Iterator[SandboxCluster]:
    with Sandbox() as sandbox:
        # A leader that hands over in order tries for 15 s where there is nobody to take over.
        settings = {"controlled.shutdown.enable": "false"}
        (cluster,) = sandbox.start({"A": ClusterSpec(brokers=2, version="1.1.1", settings=settings, fast_start=True)})
        yield cluster
