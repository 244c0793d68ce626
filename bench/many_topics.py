"""Two thousand topics and five hundred consumer groups: the cost of one round of syncing.

Prints the requests and seconds of a first round (topic settings, access rules, checkpoints, group offsets), of a round
without changes, and of a round after one change. `make bench-topics`; ARGS="--topics 100 --groups 10" for less.
"""

import argparse
import asyncio
import sys
import time
from dataclasses import replace

from clusters import client_for, create_many

from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.topic_sync import sync_topics
from heliograph.model.flow import Cluster, Flow, Groups
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets, committed_offsets
from heliograph.wire.topic_requests import change_configs

_PATIENCE = 120.0


def _cluster(alias: str, sandbox: SandboxCluster) -> Cluster:
    return replace(client_for(sandbox, _PATIENCE).cluster, alias=alias)


async def _measure(flow: Flow, topics: int, groups: int) -> None:
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    await asyncio.gather(source.connect(), target.connect())
    # The first request about a group makes a broker create __consumer_offsets; here it need not wait for other topics.
    await committed_offsets(source, ["group-0"])
    await committed_offsets(target, ["group-0"])
    await create_many(source, [f"many-{number}" for number in range(topics)], 1, timeout=_PATIENCE)
    positions = {f"group-{number}": {(f"many-{number % topics}", 0): Committed(0)} for number in range(groups)}
    refused = {str(error) for error in (await commit_offsets(source, positions)).values() if error is not None}
    assert not refused, refused
    await ensure_internal_topics(flow, source, target)
    began = time.monotonic()
    synced = await sync_topics(flow, source, target, (await source.metadata(None)).topics)
    assert not synced.failed, set(synced.failed.values())
    sys.stdout.write(f"{len(synced.partitions)} mirrors created in {time.monotonic() - began:.1f} s\n")
    syncers = FlowSyncers(flow)
    await syncers.prepare()
    await syncers.checkpoints.refresh_groups()
    for turn in ("first round", "nothing changed", "one setting changed"):
        if turn == "one setting changed":
            await change_configs(source, {"many-0": {"retention.ms": "123456789"}})
        began, before = time.monotonic(), syncers.requests
        await syncers.run_once()
        sys.stdout.write(f"{turn}: {syncers.requests - before} requests, {time.monotonic() - began:.2f} s\n")
    syncers.close()
    source.close()
    target.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=500)
    options = parser.parse_args()
    with Sandbox() as sandbox:
        spec = ClusterSpec(heap_mb=1024, fast_start=True)
        a, b = sandbox.start({"S": spec, "T": spec})
        flow = Flow(_cluster("S", a), _cluster("T", b), replication_factor=1, groups=Groups(sync_every=60.0))
        asyncio.run(_measure(flow, options.topics, options.groups))


if __name__ == "__main__":
    main()
