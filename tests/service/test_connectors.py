"""Connectors that are created, changed and deleted, and the flows and statuses that they have; without brokers."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.config.read.formats import read_all
from heliograph.config.resolve.deployment import assemble
from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED, Stored
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Flow
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import AlreadyExists, Connectors, Invalid, NotFound, Worker
from heliograph.service.supervisor import Supervisor


class FakeSupervisor:
    def __init__(self) -> None:
        self.flows: list[Flow] = []
        self.deployed: dict[str, Any] = {}

    def apply(self, flows: list[Flow], elsewhere: Sequence[Flow] | None = None) -> None:
        self.flows = flows


def config(kind: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.bootstrap.servers": "b:9092",
    } | {key.replace("_", "."): value for key, value in more.items()}


def make() -> tuple[Connectors, FakeSupervisor]:
    supervisor = FakeSupervisor()
    return Connectors(cast(Supervisor, supervisor), Worker("127.0.0.1:8083")), supervisor


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def test_the_connectors_of_a_pair_are_one_flow_with_the_parts_that_run() -> None:
    async def main() -> None:
        connectors, supervisor = make()
        await connectors.create("source", config("Source", topics="t"))
        await connectors.create("checkpoint", config("Checkpoint"), PAUSED)
        assert [(flow.name, set(flow.parts)) for flow in supervisor.flows] == [("A->B", {SOURCE})]
        await connectors.set_state("checkpoint", RUNNING)
        await connectors.put("heartbeat", config("Heartbeat"))
        assert [flow.parts for flow in supervisor.flows] == [{SOURCE, CHECKPOINT, HEARTBEAT}]
        await connectors.set_state("source", STOPPED)
        assert [flow.parts for flow in supervisor.flows] == [{CHECKPOINT, HEARTBEAT}]
        assert connectors.of_flow("A->B") == ["source", "checkpoint", "heartbeat"]
        for name in connectors.names():
            await connectors.delete(name)
        assert supervisor.flows == []
        with pytest.raises(NotFound):
            connectors.of_flow("A->B")

    run(main())


def test_a_change_that_cannot_run_is_refused_and_changes_nothing() -> None:
    async def main() -> None:
        connectors, supervisor = make()
        await connectors.create("source", config("Source", topics="t"))
        before = supervisor.flows
        with pytest.raises(AlreadyExists):
            await connectors.create("source", config("Source"))
        with pytest.raises(Invalid, match="doesn't match"):
            await connectors.put("source", config("Source", name="other"))
        with pytest.raises(Invalid, match=r"tasks\.max"):
            await connectors.patch("source", {"tasks.max": "many"})
        with pytest.raises(Invalid, match="slash"):
            await connectors.put("a/b", config("Heartbeat"))
        with pytest.raises(Invalid, match="contains no connector type"):
            await connectors.put("other", {})
        assert supervisor.flows is before
        await connectors.patch("source", {"tasks.max": "3", "topics": None})
        assert supervisor.flows[0].tasks_max == 3

    run(main())


def test_topics_are_paused_by_a_setting_of_the_source_connector() -> None:
    async def main() -> None:
        connectors, supervisor = make()
        await connectors.create("source", config("Source", topics=".*"))
        assert await connectors.pause_topics("A->B", ["t", "u"], paused=True) == ["t", "u"]
        assert supervisor.flows[0].paused_topics == {"t", "u"}
        assert await connectors.pause_topics("A->B", ["t"], paused=False) == ["u"]
        assert supervisor.flows[0].paused_topics == {"u"}

    run(main())


def test_stored_connectors_that_contradict_each_other_do_not_keep_the_others_from_running() -> None:
    async def main() -> None:
        connectors, supervisor = make()
        stored = {
            "first": config("Source", topics="t"),
            "second": config("Source", topics="u"),
            "not ours": {"connector.class": "FileStreamSource"},
            "disabled": config("Checkpoint", enabled="false") | {"source.cluster.alias": "C"},
        }
        connectors.restore(Stored(stored, {}))
        assert [flow.name for flow in supervisor.flows] == ["A->B"]
        assert connectors.unfit("first") == ""
        assert connectors.unfit("second") != ""
        assert connectors.unfit("not ours") != ""
        assert connectors.is_idle("disabled")
        states = ConnectorStates(connectors)
        assert states.status("second")[0].state == states.status("not ours")[0].state == "FAILED"
        assert states.status("disabled")[0].state == RUNNING

    run(main())


@pytest.mark.parametrize(
    "added",
    [
        "",
        "source.cluster.alias =\nreplication.policy.separator =\n",
        "replication.policy.class = IdentityReplicationPolicy\n"
        "heliograph.checkpoints.replication.policy.class = DefaultReplicationPolicy\n",
    ],
    ids=("plain", "with another alias", "with another policy for checkpoints"),
)
def test_the_connectors_of_a_file_show_its_flow_until_one_of_them_changes(tmp_path: Path, added: str) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
        "B->A.emit.heartbeats.enabled = false\nB.offset.storage.topic = kept\n" + added
    )

    async def main() -> None:
        connectors, supervisor = make()
        settings = read_all([file])
        deployment = assemble(settings)
        connectors.adopt(settings, deployment)
        name = "A->B.MirrorSourceConnector"
        assert supervisor.flows == list(deployment.flows)
        await connectors.put(name, connectors.config(name))
        assert supervisor.flows[0].topics is deployment.flows[0].topics
        await connectors.patch(name, {"tasks.max": "3"})
        assert supervisor.flows == [replace(deployment.flows[0], tasks_max=3)]
        with pytest.raises(Invalid, match="already"):
            await connectors.create("second", config("Source"))
        await connectors.set_state(name, PAUSED)
        connectors.adopt(settings, deployment)
        assert supervisor.flows == [replace(deployment.flows[0], parts=frozenset({CHECKPOINT, HEARTBEAT}))]

    run(main())


def fake_flow(groups: tuple[str, ...], errors: str = "", is_running: bool = True) -> Any:
    syncers = SimpleNamespace(trouble=lambda *_names: errors)
    syncing = SimpleNamespace(started_parts=frozenset({CHECKPOINT, HEARTBEAT}), has_groups=bool(groups))
    return SimpleNamespace(trouble="", syncers=syncers, syncing=syncing, runs_part=lambda _part: is_running)


def test_a_checkpoint_connector_has_a_task_if_it_has_groups_or_cannot_list_them() -> None:
    async def main() -> None:
        connectors, supervisor = make()
        await connectors.create("checkpoint", config("Checkpoint"))
        states = ConnectorStates(connectors)

        def tasks(flow: Any) -> list[str]:
            supervisor.deployed = {"A->B": flow}
            own, tasks = states.status("checkpoint")
            assert own.state in (RUNNING, PAUSED)
            return [task.status.state for task in tasks]

        assert tasks(fake_flow(())) == []
        assert tasks(fake_flow(("g",))) == [RUNNING]
        assert tasks(fake_flow((), errors="groups: a:9092 is gone")) == ["FAILED"]
        await connectors.set_state("checkpoint", PAUSED)
        assert tasks(fake_flow((), is_running=False)) == []
        assert tasks(fake_flow(("g",), is_running=False)) == [PAUSED]

    run(main())
