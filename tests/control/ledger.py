"""Ledgers of their own for tests, and what they hold."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from copying.lease import only
from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow, Groups, Reading
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.names import NameFilter
from heliograph.wire.cluster import ClusterClient
from logs import Pair

PARTITION = ("orders", 0)


def flow_with_gaps(pair: Pair, topic: str) -> Flow:
    """With an entry in the ledger for nearly every transaction, and a ledger of its own."""
    groups = Groups(NameFilter((f"{topic}-g.*",)), 600.0, 60.0, 60.0, 1)
    source = replace(pair.a.cluster, alias=topic)
    return replace(
        only(pair.flow(), topic), source=source, reading=Reading(max_partition_fetch_bytes=200), groups=groups
    )


@asynccontextmanager
async def _clients(flow: Flow) -> AsyncIterator[tuple[ClusterClient, ClusterClient]]:
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    try:
        await ensure_internal_topics(flow, source, target)
        yield source, target
    finally:
        source.close()
        target.close()


def with_clients(flow: Flow, do: Callable[[ClusterClient, ClusterClient], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with _clients(flow) as (source, target):
            return await do(source, target)

    return asyncio.run(main())


async def put(ledger: Ledger, target: int, source: int, count: int = 1) -> None:
    await ledger.append([JournalEntry(PARTITION, "m", (Interval(target, source, count, "s"),))])


async def all_intervals(ledger: Ledger) -> list[Interval]:
    return list(await ledger.ask(PARTITION, "m", lambda intervals: list(intervals)))


def some_intervals(numbers: Iterator[int] | range) -> list[Interval]:
    """One record and then a marker, again and again."""
    return [Interval(number, 2 * number, 1, "s") for number in numbers]
