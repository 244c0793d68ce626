"""Makes flows of connectors: those of one pair of clusters are one flow."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from heliograph.config import ConfigError
from heliograph.config.resolve.posted import PostedFlow, connector, flow_of, part_of
from heliograph.model.connect_records import RUNNING
from heliograph.model.flow import SOURCE, ConnectOffsets, Flow

log = logging.getLogger(__name__)

ClusterPair = tuple[str, str]  # aliases of source and target


@dataclass(frozen=True, slots=True)
class WantedConnector:
    """`is_projection`: it shows a part of a file's flow, and has not been changed since."""

    config: Mapping[str, str]
    state: str = RUNNING
    is_projection: bool = False

    def with_config(self, config: Mapping[str, str]) -> "WantedConnector":
        return self if config == self.config else WantedConnector(config, self.state)


@dataclass(slots=True)
class ConnectorFlows:
    """The flows of all connectors. `unfit`: name -> why it is part of no flow. `idle`: those that their own settings
    disable."""

    flows: list[Flow] = field(default_factory=list)
    unfit: dict[str, str] = field(default_factory=dict)
    idle: set[str] = field(default_factory=set)


def cluster_pair(name: str, config: Mapping[str, str]) -> ClusterPair:
    """Raises ConfigError."""
    parsed = connector(name, config)
    return parsed.source, parsed.target


class FlowBuilder:
    """`settings` are those of the worker. `offsets` is where Connect keeps source offsets, None if nowhere."""

    def __init__(self, settings: Mapping[str, str], offsets: ConnectOffsets | None) -> None:
        self._settings = settings
        self._offsets = offsets
        self._file_flows: dict[ClusterPair, Flow] = {}
        self._logged: set[str] = set()

    @property
    def has_file(self) -> bool:
        return bool(self._file_flows)

    def use_file(self, flows: Iterable[Flow]) -> None:
        """As long as the connectors of a pair are projections of one of these flows, it is their flow."""
        self._file_flows = {(flow.source.alias, flow.target.alias): flow for flow in flows}

    def build(self, connectors: Mapping[str, WantedConnector]) -> ConnectorFlows:
        result = ConnectorFlows()
        pairs: dict[ClusterPair, dict[str, WantedConnector]] = {}
        for name, wanted in connectors.items():
            try:
                pairs.setdefault(cluster_pair(name, wanted.config), {})[name] = wanted
            except ConfigError as error:
                result.unfit[name] = str(error)
        for pair, members in pairs.items():
            flow = self._flow_of_fitting(pair, members, result.unfit)
            if flow is not None:
                result.flows.append(flow)
            parts = flow.parts if flow is not None else ()
            result.idle |= {name for name, wanted in members.items() if part_of(wanted.config) not in parts}
        return result

    def _flow_of_fitting(
        self, pair: ClusterPair, members: Mapping[str, WantedConnector], unfit: dict[str, str]
    ) -> Flow | None:
        """Connectors that Connect has stored may contradict each other: then the first ones make the flow."""
        try:
            return self.flow(pair, members)
        except ConfigError:
            pass
        fitting: dict[str, WantedConnector] = {}
        flow = None
        for name, wanted in members.items():
            try:
                flow = self.flow(pair, {**fitting, name: wanted})
                fitting[name] = wanted
            except ConfigError as error:
                unfit[name] = str(error)
        return flow

    def flow(self, pair: ClusterPair, members: Mapping[str, WantedConnector]) -> Flow | None:
        """Only with the parts that are to run. Raises ConfigError."""
        file_flow = self._file_flows.get(pair)
        are_projections = all(wanted.is_projection for wanted in members.values())
        if file_flow is not None and are_projections and len(members) == len(file_flow.parts):
            flow: Flow | None = file_flow
        else:
            made = flow_of(
                [connector(name, wanted.config) for name, wanted in members.items()],
                self._settings,
                file_flow.connect_offsets if file_flow is not None else self._offsets_of(members),
            )
            self._log_once(made)
            flow = made.flow
        if flow is None:
            return None
        paused = {part_of(wanted.config) for wanted in members.values() if wanted.state != RUNNING}
        return replace(flow, parts=flow.parts - paused)

    def _log_once(self, made: PostedFlow) -> None:
        for level, texts in ((logging.WARNING, made.warnings), (logging.INFO, made.notes)):
            for text in texts:
                if text not in self._logged:
                    log.log(level, "%s", text)
                self._logged.add(text)

    def _offsets_of(self, members: Mapping[str, WantedConnector]) -> ConnectOffsets | None:
        if self._offsets is None:
            return None
        source = next((name for name, wanted in members.items() if part_of(wanted.config) == SOURCE), "")
        return replace(self._offsets, connector=source) if source else self._offsets
