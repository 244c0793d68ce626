"""The connectors of this process and the flows that they make, for reading."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.config import ConfigError
from heliograph.config.resolve.posted import part_of, shown
from heliograph.model.flow import Flow
from heliograph.service.connector_flows import ClusterPair, ConnectorFlows, WantedConnector, cluster_pair
from heliograph.service.flow_supervisor import FlowSupervisor
from heliograph.service.supervisor import Supervisor


class NotFound(Exception):
    """There is no such connector, task or flow."""


@dataclass(frozen=True, slots=True)
class Worker:
    """The Connect worker that this process is for its clients. `settings` are those of its file."""

    id: str
    settings: Mapping[str, str] = field(default_factory=dict)
    offsets_topic: str = ""
    group: str = ""


class ConnectorView:
    def __init__(self, supervisor: Supervisor, worker: Worker) -> None:
        self.worker = worker
        self._supervisor = supervisor
        self._wanted: dict[str, WantedConnector] = {}
        self._made = ConnectorFlows()

    # --- connectors -----------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        return sorted(self._wanted)

    def wanted(self, name: str) -> WantedConnector:
        if name not in self._wanted:
            raise NotFound(f"Connector {name} not found")
        return self._wanted[name]

    def config(self, name: str) -> dict[str, str]:
        """Without secrets."""
        return shown(self.wanted(name).config)

    def part(self, name: str) -> str | None:
        """None for a connector that is none of MirrorMaker 2's."""
        return part_of(self.wanted(name).config)

    def unfit(self, name: str) -> str:
        """Why it is part of no flow; empty if it is part of one."""
        return self._made.unfit.get(name, "")

    def is_idle(self, name: str) -> bool:
        """Whether its own settings disable it."""
        return name in self._made.idle

    # --- flows ----------------------------------------------------------------------------------------------

    def flow_names(self) -> list[str]:
        return sorted({self.flow_name(name) for name in self._wanted} - {""})

    def flow_name(self, name: str) -> str:
        """Of the flow that the connector is for; empty if its config does not say."""
        try:
            return "->".join(cluster_pair(name, self.wanted(name).config))
        except ConfigError:
            return ""

    def of_flow(self, flow: str) -> list[str]:
        """The connectors of a flow, by its name `A->B`."""
        source, _, target = flow.partition("->")
        names = self._names_of((source, target))
        if not names:
            raise NotFound(f"There is no flow {flow}")
        return names

    def _names_of(self, pair: ClusterPair) -> list[str]:
        return [name for name in self._wanted if self.flow_name(name) == "->".join(pair)]

    def deployed(self, flow: str) -> FlowSupervisor | None:
        """None where the connectors make no flow, or one without any part."""
        return self._supervisor.deployed.get(flow)

    def deployed_of(self, name: str) -> FlowSupervisor | None:
        return self.deployed(self.flow_name(name))

    def copying(self) -> tuple[Flow, ...]:
        """All flows that copy, in this process or in others."""
        return self._supervisor.copying_anywhere()

    @property
    def spark_is_up(self) -> bool:
        return self._supervisor.spark_is_up
