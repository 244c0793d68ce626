"""The driver's connections for one flow."""

from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.service.tenure import Tenure
from heliograph.wire.cluster import ClusterClient


class FlowClients:
    """A client of each cluster and the ledger of a flow, for everything that the driver does for it. Whoever makes it
    closes it.

    `signals` is a second client of the target. A broker answers the requests of one connection in order: a lease must
    not end because its renewal waits for the response to a slow request of a syncer.

    They send nothing after `tenure`: another member may drive the flow by then.
    """

    def __init__(self, flow: Flow, tenure: Tenure | None = None) -> None:
        check = tenure.check if tenure is not None else None
        self._tenure = tenure
        self.source = ClusterClient(flow.source, check)
        self.target = ClusterClient(flow.target, check)
        self.signals = ClusterClient(flow.target, check)
        self.ledger = Ledger(self.target, flow.source.alias)

    def are_for(self, flow: Flow) -> bool:
        return (self.source.cluster, self.target.cluster) == (flow.source, flow.target)

    @property
    def epoch(self) -> int:
        """That of the membership; 0 without."""
        return self._tenure.epoch if self._tenure is not None else 0

    @property
    def requests(self) -> int:
        """Sent so far, to both clusters, except signals."""
        return self.source.requests + self.target.requests

    def close(self) -> None:
        self.source.close()
        self.target.close()
        self.signals.close()
