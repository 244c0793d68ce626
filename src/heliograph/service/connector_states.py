"""How connectors are doing, in Connect's words: states, tasks, topics, offsets. Changes nothing."""

import asyncio
import logging
import time
from dataclasses import dataclass

from heliograph import __version__
from heliograph.control.connect_store import ConnectStore
from heliograph.control.mm2_offsets import mm2_offsets
from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED, Status, status_key
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Flow
from heliograph.service.connectors import Connectors, Wanted
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

FAILED, UNASSIGNED, RESTARTING = "FAILED", "UNASSIGNED", "RESTARTING"
_TELL_EVERY = 1.0
_TASK_CLASSES = {SOURCE: "MirrorSourceTask", CHECKPOINT: "MirrorCheckpointTask", HEARTBEAT: "MirrorHeartbeatTask"}
_JOBS = {CHECKPOINT: ("groups", "checkpoints", "group offsets"), HEARTBEAT: ("heartbeats",)}


@dataclass(frozen=True, slots=True)
class TaskStatus:
    id: int
    status: Status


class ConnectorStates:
    def __init__(self, connectors: Connectors) -> None:
        self._connectors = connectors
        self._seen: dict[str, dict[str, int]] = {}  # how far topics were written when their list was emptied

    def status(self, name: str) -> tuple[Status, list[TaskStatus]]:
        """The connector's own, and its tasks'."""
        wanted = self._connectors.wanted(name)
        status = self._status(name, wanted)
        tasks = [] if wanted.state == STOPPED else self._tasks(name)
        if status.state == PAUSED:
            return status, [TaskStatus(task.id, self._as(PAUSED)) for task in tasks]
        return status, tasks

    def _status(self, name: str, wanted: Wanted) -> Status:
        if why := self._connectors.unfit(name):
            return self._as(FAILED, why)
        part, deployed = self._connectors.part(name), self._connectors.deployed_of(name)
        runs = deployed is not None and (deployed.is_copying if part == SOURCE else deployed.runs_part(part or ""))
        if wanted.state != RUNNING:
            return self._as(RUNNING if runs else wanted.state)
        if deployed is not None and deployed.trouble:
            return self._as(FAILED, deployed.trouble)
        return self._as(RUNNING if runs or self._connectors.is_idle(name) else UNASSIGNED)

    def _tasks(self, name: str) -> list[TaskStatus]:
        """Of what does not run, those that there were."""
        part, deployed = self._connectors.part(name), self._connectors.deployed_of(name)
        if deployed is None or part is None:
            return []
        if part == SOURCE:
            return [
                TaskStatus(
                    number, self._as(FAILED if one.trouble else RUNNING if one.running else UNASSIGNED, one.trouble)
                )
                for number, one in enumerate(deployed.tasks())
            ]
        if part not in deployed.started_parts:
            return []
        if deployed.syncers is None or not deployed.runs_part(part):
            return [TaskStatus(0, self._as(UNASSIGNED))]
        trouble = deployed.syncers.trouble(*_JOBS[part])
        return [TaskStatus(0, self._as(FAILED if trouble else RUNNING, trouble))]

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """One for each task, as MirrorMaker 2 would write it."""
        _status, tasks = self.status(name)
        part, deployed = self._connectors.part(name), self._connectors.deployed_of(name)
        config = self._connectors.config(name) | {
            "task.class": f"org.apache.kafka.connect.mirror.{_TASK_CLASSES[part or SOURCE]}"
        }
        found = [config | {"task.index": str(task.id)} for task in tasks]
        if part == SOURCE and deployed is not None:
            for one, lease in zip(found, deployed.tasks(), strict=False):
                one["task.assigned.partitions"] = ",".join(map(str, sorted(lease.partitions)))
        return found

    def topics(self, name: str) -> list[str]:
        """Those that were written to since the list was emptied."""
        if name not in self._connectors.names():
            return []
        seen = self._seen.get(name, {})
        return sorted(topic for topic, at in self._written(name).items() if at > seen.get(topic, 0))

    def reset_topics(self, name: str) -> None:
        if name in self._connectors.names():
            self._seen[name] = self._written(name)

    def _written(self, name: str) -> dict[str, int]:
        """By topic, how far it was written."""
        part, deployed = self._connectors.part(name), self._connectors.deployed_of(name)
        if deployed is None:
            return {}
        if part == SOURCE:
            ends: dict[str, int] = {}
            for one, at in deployed.positions().items():
                ends[one.mirror] = ends.get(one.mirror, 0) + at.target
            return ends
        if part is None or deployed.syncers is None:
            return {}
        flow = deployed.syncers.flow
        if part == HEARTBEAT:
            return {flow.policy.heartbeats_topic(): int(time.time())}
        return {flow.policy.checkpoints_topic(flow.source.alias): len(deployed.syncers.checkpoints.latest)}

    async def offsets(self, name: str) -> list[tuple[dict[str, str | int], dict[str, int]]]:
        """Partitions and offsets as MirrorMaker 2's connectors note them: the last record that was copied."""
        self._connectors.wanted(name)
        part, deployed = self._connectors.part(name), self._connectors.deployed_of(name)
        if deployed is None:
            return []
        source, _, target = self._connectors.flow_name(name).partition("->")
        if part == HEARTBEAT:
            return [({"sourceClusterAlias": source, "targetClusterAlias": target}, {"offset": 0})]
        if part == CHECKPOINT:
            latest = deployed.syncers.checkpoints.latest.values() if deployed.syncers is not None else ()
            return [
                ({"partition": one.partition, "topic": one.topic, "group": one.group}, {"offset": 0}) for one in latest
            ]
        known = {(one.topic, one.partition): at.source - 1 for one, at in deployed.positions().items() if at.source > 0}
        if not known and self._connectors.worker.offsets_topic and deployed.wanted is not None:
            known = await _noted(deployed.wanted)  # it has not run since this process started
        return [
            ({"cluster": source, "partition": partition, "topic": topic}, {"offset": last})
            for (topic, partition), last in sorted(known.items())
        ]

    async def keep_telling(self, store: ConnectStore) -> None:
        """Write down how all connectors are doing, where Connect would."""
        said = ""
        while True:
            try:
                await store.tell(self._told())
            except WireError as error:
                if str(error) != said:
                    log.warning("how connectors are doing cannot be written down: %s", error)
                said = str(error)
            except Exception:
                log.exception("how connectors are doing cannot be told")
            await asyncio.sleep(_TELL_EVERY)

    def _told(self) -> dict[bytes, bytes]:
        told: dict[bytes, bytes] = {}
        for name in self._connectors.names():
            own, tasks = self.status(name)
            told[status_key(name)] = own.to_value()
            told |= {status_key(name, task.id): task.status.to_value() for task in tasks}
        return told

    def _as(self, state: str, trace: str = "") -> Status:
        return Status(state, self._connectors.worker.id, __version__, trace)


async def _noted(flow: Flow) -> dict[tuple[str, int], int]:
    client = ClusterClient(flow.target)
    try:
        return await mm2_offsets(flow, client)
    finally:
        client.close()
