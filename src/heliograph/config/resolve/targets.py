"""Only the flows into some of the clusters: `--clusters` of MirrorMaker 2's command."""

from collections.abc import Collection
from dataclasses import replace

from heliograph.config.messages import ConfigError
from heliograph.config.resolve.deployment import Deployment


def into(deployment: Deployment, targets: Collection[str]) -> Deployment:
    """The deployment with its flows into these clusters, those that only write heartbeats included; with all of them if
    no cluster is named. Raises ConfigError if an alias is unknown, or nothing is left to run."""
    if not targets:
        return deployment
    aliases = ", ".join(deployment.clusters)
    unknown = [alias for alias in dict.fromkeys(targets) if alias not in deployment.clusters]
    if unknown:
        names = " and ".join(unknown)
        are = "is no cluster" if len(unknown) == 1 else "are no clusters"
        raise ConfigError(f"{deployment.file}: --clusters: {names} {are} of this file, which has {aliases}")
    flows = tuple(flow for flow in deployment.flows if flow.target.alias in targets)
    heartbeats = tuple(flow for flow in deployment.heartbeat_only_flows if flow.target.alias in targets)
    if not flows and not heartbeats:
        text = f"No source->target replication flows into {', '.join(targets)}"
        into_others = ", ".join(sorted({flow.target.alias for flow in deployment.all_flows}))
        raise ConfigError(f"{deployment.file}: --clusters: {text}: the file has flows into {into_others} only")
    elsewhere = tuple(flow for flow in deployment.flows if flow.target.alias not in targets)
    return replace(deployment, flows=flows, heartbeat_only_flows=heartbeats, flows_elsewhere=elsewhere)
