"""Connectors of a file that are paused or stopped: they are there with their state, and can be resumed."""

import asyncio
from pathlib import Path

from heliograph.config.read.formats import read_all
from heliograph.config.resolve.deployment import assemble
from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED
from heliograph.model.flow import CHECKPOINT, SOURCE
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors

from .test_connectors import make

RESOURCE = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
spec:
  replicas: {replicas}
  target: {{alias: B, bootstrapServers: "b:9092"}}
  mirrors:
    - source: {{alias: A, bootstrapServers: "a:9092"}}
      sourceConnector: {{state: {source}}}
      checkpointConnector: {{state: {checkpoint}}}
"""
COPY, GROUPS = "A->B.MirrorSourceConnector", "A->B.MirrorCheckpointConnector"


def adopt(
    connectors: Connectors,
    folder: Path,
    *,
    replicas: int = 1,
    source: str = "running",
    checkpoint: str = "running",
) -> None:
    file = folder / "mirror.yaml"
    file.write_text(RESOURCE.format(replicas=replicas, source=source, checkpoint=checkpoint))
    document = read_all([file])
    connectors.adopt(document, assemble(document))


def states(connectors: Connectors) -> dict[str, str]:
    return {name: connectors.wanted(name).state for name in connectors.names()}


def test_connectors_have_the_states_of_their_file(tmp_path: Path) -> None:
    connectors, supervisor = make()
    adopt(connectors, tmp_path, source="stopped", checkpoint="paused")
    assert states(connectors) == {COPY: STOPPED, GROUPS: PAUSED}
    assert [flow.parts for flow in supervisor.flows] == [frozenset()]
    shown = ConnectorStates(connectors)
    assert {name: shown.status(name)[0].state for name in connectors.names()} == {COPY: STOPPED, GROUPS: PAUSED}


def test_a_connector_that_is_stopped_by_its_file_can_be_resumed(tmp_path: Path) -> None:
    connectors, supervisor = make()
    adopt(connectors, tmp_path, source="stopped")
    assert [flow.parts for flow in supervisor.flows] == [{CHECKPOINT}]
    asyncio.run(connectors.set_state(COPY, RUNNING))
    assert [flow.parts for flow in supervisor.flows] == [{SOURCE, CHECKPOINT}]


def test_a_file_that_is_reloaded_changes_states_only_where_it_says_something_else(tmp_path: Path) -> None:
    connectors, supervisor = make()
    adopt(connectors, tmp_path, source="paused")
    asyncio.run(connectors.set_state(COPY, RUNNING))
    asyncio.run(connectors.set_state(GROUPS, PAUSED))
    adopt(connectors, tmp_path, source="paused")
    assert states(connectors) == {COPY: RUNNING, GROUPS: PAUSED}
    adopt(connectors, tmp_path, source="stopped")
    assert states(connectors) == {COPY: STOPPED, GROUPS: PAUSED}
    adopt(connectors, tmp_path)
    assert states(connectors) == {COPY: RUNNING, GROUPS: PAUSED}
    adopt(connectors, tmp_path, replicas=0)
    assert states(connectors) == {COPY: STOPPED, GROUPS: STOPPED}
    assert [flow.parts for flow in supervisor.flows] == [frozenset()]
