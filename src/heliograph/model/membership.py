"""How the members of a deployment share the flows into one target cluster: their group, and its times in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """`rebalance_delay` is how long the flows of a member that is gone wait for it to come back."""

    group: str
    session_timeout: float = 10.0
    heartbeat_interval: float = 0.5
    rebalance_timeout: float = 60.0
    rebalance_delay: float = 0.0
