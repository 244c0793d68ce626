"""All metrics of this process, as of now."""

import platform
import re
from collections.abc import Iterable

from prometheus_client.core import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector

from heliograph import __version__
from heliograph.config.read.connector import CLASSES
from heliograph.metrics import definitions as of
from heliograph.metrics.bounds import Detail
from heliograph.metrics.connect import put_connectors, put_rebalances, put_tasks
from heliograph.metrics.mm2 import put_checkpoints, put_source
from heliograph.metrics.naming import SCHEMES, Names
from heliograph.metrics.own import put_copying, put_events, put_keeping, put_state
from heliograph.metrics.sheet import Family, Sheet
from heliograph.model.flow import SOURCE
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors
from heliograph.service.events import Events


class Collector:
    def __init__(self, connectors: Connectors, states: ConnectorStates, events: Events) -> None:
        self._connectors = connectors
        self._states = states
        self._events = events

    def collect(self, detail: str = "", names: Names = Names.HELIOGRAPH) -> "Families":
        """For `detail` see `bounds`, for `names` see `naming`. Call from the event loop's thread; the result may be
        used from any."""
        connectors = self._connectors
        sheet = Sheet(SCHEMES[names], {name: _class(name, connectors.part(name)) for name in connectors.names()})
        sheet.put(of.BUILD, 1, __version__, platform.python_version())
        sheet.put(of.SPARK_UP, connectors.spark_is_up)
        put_connectors(sheet, {name: self._states.status(name)[1] for name in connectors.names()})
        flows = connectors.flow_names()
        put_events(sheet, self._events.counts, flows)
        deployed = {flow: connectors.deployed(flow) for flow in flows}
        runners = {
            flow: flow_supervisor.runner
            for flow, flow_supervisor in deployed.items()
            if flow_supervisor is not None and flow_supervisor.runner is not None
        }
        measures = {flow: runner.view.measures() for flow, runner in runners.items()}
        put_rebalances(sheet, [runner.view.leases() for runner in runners.values()])
        topics = sum(len({measure.partition.topic for measure in flow}) for flow in measures.values())
        shown = Detail.asked(detail, topics, sum(map(len, measures.values())))
        for flow, flow_supervisor in deployed.items():
            of_flow = connectors.of_flow(flow)
            put_state(sheet, flow, flow_supervisor, not any(map(connectors.unfit, of_flow)))
            if flow in runners:
                runner = runners[flow]
                put_copying(sheet, runner, measures[flow], shown)
                put_source(sheet, runner.flow, measures[flow], shown)
                source = next((name for name in of_flow if connectors.part(name) == SOURCE), "")
                put_tasks(sheet, flow, source, runner.view.tasks(), measures[flow])
            if flow_supervisor is not None and flow_supervisor.syncers is not None:
                put_keeping(sheet, flow_supervisor.syncers)
                put_checkpoints(sheet, flow_supervisor.syncers.flow, flow_supervisor.syncers.checkpoint_ages, shown)
        return Families(sheet.families())


def _class(connector: str, part: str | None) -> str:
    """One that is none of MM2's has its own name instead."""
    return CLASSES[part] if part is not None else re.sub(r"\W", "_", connector, flags=re.ASCII)


class Families:
    """Collected metrics, as prometheus-client needs them."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = list(families)

    def collect(self) -> list[Family]:
        return self._families

    def to_text(self) -> bytes:
        """In Prometheus' text format, with the operating system's metrics of this process."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        return generate_latest(registry)
