"""What the parts of a running flow share."""

import asyncio
from dataclasses import dataclass

from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.service.error_log import ErrorLog
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_stats import FlowStats
from heliograph.wire.cluster import ClusterClient


@dataclass(slots=True)
class FlowContext:
    """`flow` is replaced by `FlowRunner.change` alone: read it when it is needed, do not keep it. `refresh_needed`
    makes the topic watcher look at once."""

    flow: Flow
    run_id: str
    clients: FlowClients
    refresh_needed: asyncio.Event
    stats: FlowStats
    errors: ErrorLog
    epoch: int = 0  # of the assignment by which this process drives the flow

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def source(self) -> ClusterClient:
        return self.clients.source

    @property
    def target(self) -> ClusterClient:
        return self.clients.target

    @property
    def signals(self) -> ClusterClient:
        """Another client of the target."""
        return self.clients.signals

    @property
    def ledger(self) -> Ledger:
        return self.clients.ledger
