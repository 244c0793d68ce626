"""States, tasks, topics and offsets of connectors, as Connect reports them."""

import asyncio
import logging
import time
from dataclasses import dataclass

from heliograph import __version__
from heliograph.config.read.connector import aliases_of
from heliograph.control.connect_store import ConnectStore
from heliograph.control.mm2_offsets import mm2_offsets
from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED, Status, status_key
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Flow
from heliograph.service.connector_flows import WantedConnector
from heliograph.service.connector_view import ConnectorView
from heliograph.service.error_log import ErrorLog
from heliograph.service.members import Members
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

FAILED, UNASSIGNED, RESTARTING = "FAILED", "UNASSIGNED", "RESTARTING"
_STATUS_INTERVAL = 1.0
_TASK_CLASSES = {SOURCE: "MirrorSourceTask", CHECKPOINT: "MirrorCheckpointTask", HEARTBEAT: "MirrorHeartbeatTask"}
_SYNCERS = {CHECKPOINT: ("groups", "checkpoints", "group offsets"), HEARTBEAT: ("heartbeats",)}


@dataclass(frozen=True, slots=True)
class TaskStatus:
    id: int
    status: Status


class ConnectorStates:
    def __init__(self, connectors: ConnectorView, members: Members | None = None) -> None:
        """`members` share the flows."""
        self._connectors = connectors
        self._members = members
        self._ends_at_reset: dict[str, dict[str, int]] = {}  # of each connector's topics, when their list was reset

    def status(self, name: str) -> tuple[Status, list[TaskStatus]]:
        """Of the connector itself, and of its tasks."""
        wanted = self._connectors.wanted(name)
        status = self._status(name, wanted)
        tasks = [] if wanted.state == STOPPED else self._tasks(name)
        if status.state == PAUSED:
            return status, [TaskStatus(task.id, self._as(PAUSED)) for task in tasks]
        return status, tasks

    def _status(self, name: str, wanted: WantedConnector) -> Status:
        if reason := self._connectors.unfit(name):
            return self._as(FAILED, reason)
        part, flow = self._connectors.part(name), self._connectors.deployed_of(name)
        is_running = flow is not None and (flow.is_copying if part == SOURCE else flow.runs_part(part or ""))
        if flow is None and self._members is not None:
            driver = self._members.driver(self._connectors.flow_name(name))
            if driver is not None:
                return Status(wanted.state, driver.rest, driver.version)
        if wanted.state != RUNNING:
            return self._as(RUNNING if is_running else wanted.state)
        if flow is not None and flow.trouble:
            return self._as(FAILED, flow.trouble)
        return self._as(RUNNING if is_running or self._connectors.is_idle(name) else UNASSIGNED)

    def _tasks(self, name: str) -> list[TaskStatus]:
        """If it does not run, the tasks that it had."""
        part, flow = self._connectors.part(name), self._connectors.deployed_of(name)
        if flow is None or part is None:
            return []
        if part == SOURCE:
            return [
                TaskStatus(
                    number, self._as(FAILED if task.trouble else RUNNING if task.running else UNASSIGNED, task.trouble)
                )
                for number, task in enumerate(flow.copying.tasks())
            ]
        if part not in flow.syncing.started_parts:
            return []
        errors = flow.syncers.trouble(*_SYNCERS[part]) if flow.syncers is not None and flow.runs_part(part) else ""
        if part == CHECKPOINT and not flow.syncing.has_groups and not errors:
            return []  # as in Connect: its tasks share the groups
        state = FAILED if errors else RUNNING if flow.runs_part(part) else UNASSIGNED
        return [TaskStatus(0, self._as(state, errors))]

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """One for each task, as MirrorMaker 2 would write it."""
        _status, tasks = self.status(name)
        part, flow = self._connectors.part(name), self._connectors.deployed_of(name)
        config = self._connectors.config(name) | {
            "task.class": f"org.apache.kafka.connect.mirror.{_TASK_CLASSES[part or SOURCE]}"
        }
        configs = [config | {"task.index": str(task.id)} for task in tasks]
        if part == SOURCE and flow is not None:
            for task_config, lease in zip(configs, flow.copying.tasks(), strict=False):
                task_config["task.assigned.partitions"] = ",".join(map(str, sorted(lease.partitions)))
        return configs

    def topics(self, name: str) -> list[str]:
        """Those that were written to since the list was reset."""
        if name not in self._connectors.names():
            return []
        ends_at_reset = self._ends_at_reset.get(name, {})
        return sorted(topic for topic, end in self._ends(name).items() if end > ends_at_reset.get(topic, 0))

    def reset_topics(self, name: str) -> None:
        if name in self._connectors.names():
            self._ends_at_reset[name] = self._ends(name)

    def _ends(self, name: str) -> dict[str, int]:
        """By topic, a number that grows when the connector writes to it."""
        part, flow = self._connectors.part(name), self._connectors.deployed_of(name)
        if flow is None:
            return {}
        if part == SOURCE:
            ends: dict[str, int] = {}
            for partition, position in flow.copying.positions().items():
                ends[partition.mirror] = ends.get(partition.mirror, 0) + position.target
            return ends
        if part is None or flow.syncers is None:
            return {}
        if part == HEARTBEAT:
            return {flow.syncers.flow.policy.heartbeats_topic(): int(time.time())}
        return {flow.syncers.flow.checkpoints_topic: len(flow.syncers.checkpoints.latest)}

    async def offsets(self, name: str) -> list[tuple[dict[str, str | int], dict[str, int]]]:
        """Partitions and offsets as MirrorMaker 2's connectors store them: of the last record that was copied."""
        config = self._connectors.wanted(name).config
        part, flow = self._connectors.part(name), self._connectors.deployed_of(name)
        if flow is None:
            return []
        source, target = aliases_of(config)
        if part == HEARTBEAT:
            return [({"sourceClusterAlias": source, "targetClusterAlias": target}, {"offset": 0})]
        if part == CHECKPOINT:
            latest = flow.syncers.checkpoints.latest.values() if flow.syncers is not None else ()
            return [
                (
                    {"partition": checkpoint.partition, "topic": checkpoint.topic, "group": checkpoint.group},
                    {"offset": 0},
                )
                for checkpoint in latest
            ]
        offsets = {
            (partition.topic, partition.partition): position.source - 1
            for partition, position in flow.copying.positions().items()
            if position.source > 0
        }
        if not offsets and self._connectors.worker.offsets_topic and flow.wanted is not None:
            offsets = await _stored_offsets(flow.wanted)  # it has not run since this process started
        return [
            ({"cluster": source, "partition": partition, "topic": topic}, {"offset": offset})
            for (topic, partition), offset in sorted(offsets.items())
        ]

    async def keep_writing(self, store: ConnectStore) -> None:
        """Writes the statuses of all connectors to Connect's status topic, until cancelled."""
        errors = ErrorLog()
        while True:
            try:
                await store.write_statuses(self._statuses())
                errors.recovered("statuses")
            except WireError as error:
                if errors.is_new("statuses", str(error)):
                    log.warning("statuses of connectors could not be written and will be tried again: %s", error)
            except Exception as error:
                if errors.is_new("statuses", repr(error)):
                    log.exception("statuses of connectors could not be written and will be tried again")
            await asyncio.sleep(_STATUS_INTERVAL)

    def _statuses(self) -> dict[bytes, bytes]:
        statuses: dict[bytes, bytes] = {}
        for name in self._connectors.names():
            own, tasks = self.status(name)
            statuses[status_key(name)] = own.to_value()
            statuses |= {status_key(name, task.id): task.status.to_value() for task in tasks}
        return statuses

    def _as(self, state: str, trace: str = "") -> Status:
        return Status(state, self._connectors.worker.id, __version__, trace)


async def _stored_offsets(flow: Flow) -> dict[tuple[str, int], int]:
    client = ClusterClient(flow.target)
    try:
        return await mm2_offsets(flow, client)
    finally:
        client.close()
