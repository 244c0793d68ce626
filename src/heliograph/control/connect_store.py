"""Connectors, their target states and statuses, stored in the topics of a Connect cluster.

For one process at a time: it does not see changes that another one makes.
"""

import logging
from collections.abc import Mapping

from heliograph.control.internal_topic_setup import ensure_storage_topics
from heliograph.control.mm2_workers import StillRunning, until_empty
from heliograph.model.connect_records import Pair, Stored, config_record, deleted_records, stale_keys, state_records
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import own_topic, partition_for, read_all, write

log = logging.getLogger(__name__)


class ConnectStore:
    def __init__(self, client: ClusterClient, group: str, configs: str, status: str) -> None:
        self._client = client
        self._group = group
        self._configs = configs
        self._status = status
        self._statuses: dict[bytes, bytes] = {}  # as written to the topic

    async def open(self, topics: Mapping[str, tuple[int, int]]) -> Stored:
        """Creates missing topics and reads the stored connectors. Raises StillRunning if Connect runs."""
        await ensure_storage_topics(self._client, topics)
        waiting = f"waiting for the workers of Connect group {self._group} to stop"
        if state := await until_empty(self._client, self._group, waiting):
            raise StillRunning(
                f"workers of Kafka Connect are running (group {self._group} is in state {state}): stop them first, "
                "both would run the same connectors"
            )
        self._statuses = await self._read_status()
        return await self._read_configs()

    async def put_config(self, name: str, config: Mapping[str, str]) -> None:
        await self._write([config_record(name, config)])

    async def put_state(self, name: str, state: str) -> None:
        await self._write(state_records(name, state))

    async def delete(self, name: str) -> None:
        await self._write(deleted_records(name))

    async def write_statuses(self, status: Mapping[bytes, bytes]) -> None:
        """Writes the statuses that have changed, and deletes those that are gone."""
        news: list[Pair] = [(key, value) for key, value in status.items() if self._statuses.get(key) != value]
        news += stale_keys(self._statuses, status)
        if not news:
            return
        topic = await own_topic(self._client, self._status)
        by_partition: dict[int, list[Pair]] = {}
        for pair in news:
            by_partition.setdefault(partition_for(pair[0], len(topic.leaders)), []).append(pair)
        for partition, pairs in by_partition.items():
            await write(self._client, topic, partition, pairs)
        self._statuses = dict(status)

    async def _write(self, records: list[Pair]) -> None:
        await write(self._client, await own_topic(self._client, self._configs), 0, records)

    async def _read_configs(self) -> Stored:
        stored = Stored()
        async for record in read_all(self._client, await own_topic(self._client, self._configs), 0):
            try:
                if record.key is not None:
                    stored.add(record.key, record.value)
            except ValueError as error:
                log.warning("record %d of %s-0 cannot be decoded; ignored: %s", record.offset, self._configs, error)
        return stored

    async def _read_status(self) -> dict[bytes, bytes]:
        statuses: dict[bytes, bytes] = {}
        topic = await own_topic(self._client, self._status)
        for partition in topic.leaders:
            async for record in read_all(self._client, topic, partition):
                if record.key is not None and record.value is not None:
                    statuses[record.key] = record.value
                elif record.key is not None:
                    statuses.pop(record.key, None)
        return statuses
