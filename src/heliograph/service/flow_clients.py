"""The driver's connections for one flow."""

from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.wire.cluster import ClusterClient


class FlowClients:
    """A client of each cluster and the ledger of a flow, for everything that the driver does for it. Whoever makes it
    closes it.

    `signals` is a second client of the target. A broker answers the requests of one connection in order: a lease must
    not end because its renewal waits for the response to a slow request of a syncer.
    """

    def __init__(self, flow: Flow) -> None:
        self.source = ClusterClient(flow.source)
        self.target = ClusterClient(flow.target)
        self.signals = ClusterClient(flow.target)
        self.ledger = Ledger(self.target, flow.source.alias)

    def are_for(self, flow: Flow) -> bool:
        return (self.source.cluster, self.target.cluster) == (flow.source, flow.target)

    @property
    def requests(self) -> int:
        """Sent so far, to both clusters, except signals."""
        return self.source.requests + self.target.requests

    def close(self) -> None:
        self.source.close()
        self.target.close()
        self.signals.close()
