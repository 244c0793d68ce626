"""The second broker of a simulated cluster: a follower, which lags."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from copying.simulation.cluster import SimulatedCluster, Topic
from copying.simulation.fetching import Fetches
from heliograph.wire.fetch_response import FetchAnswer


@dataclass
class Follower(SimulatedCluster):
    """Serves fetches from logs as they were when it last replicated them. The leader answers everything else."""

    leader: SimulatedCluster = field(default_factory=lambda: SimulatedCluster(""))
    served: int = 0  # bytes of records

    def replicate(self) -> None:
        """Fetch what the leader has now."""
        before, self.topics = (
            self.topics,
            {
                name: Topic(topic.id, [log.snapshot() for log in topic.partitions])
                for name, topic in self.leader.topics.items()
            },
        )
        for topic in before.values():
            for log in topic.partitions:
                log.changed()

    def handle(self, message: Any, fetches: Fetches, reply: Callable[[Any], None]) -> None:
        def serve(answer: FetchAnswer) -> None:
            self.served += sum(len(fetched.data) for fetched in answer.partitions)
            reply(answer)

        if type(message).__name__ == "FetchRequest":
            fetches.handle(self, message, serve)
        else:
            self.leader.handle(message, fetches, reply)
