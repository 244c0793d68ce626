"""`heliograph config`: shows the flows of files, where each value comes from, and the flows in another format."""

import dataclasses
import json
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heliograph.cli.choice import WorkerFile, with_worker
from heliograph.cli.screen import FILES, fail
from heliograph.config import ConfigError, Deployment
from heliograph.config.declare import catalogue
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import shown
from heliograph.config.declare.supported import BOOTSTRAP_SERVERS
from heliograph.config.messages import shown_notes
from heliograph.config.read.formats import read_all
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.deployment import assemble
from heliograph.config.show.convert import CONNECT, PROPERTIES, STRIMZI, bare_secrets, convert
from heliograph.config.show.data_path import data_path
from heliograph.config.show.explain import ExplainedValue, Explanation, explain
from heliograph.config.show.outline import addresses, class_name, outline
from heliograph.model.flow import CHECKPOINT, DEFAULT_CONFIG_PROPERTIES_EXCLUDE, HEARTBEAT, SOURCE, Cluster, Flow
from heliograph.model.names import AllBut, Matches, NameFilter
from heliograph.model.policy import ReplicationPolicy

_PARTS = {SOURCE: "copies records", CHECKPOINT: "translates group offsets", HEARTBEAT: "writes heartbeats"}


class Format(StrEnum):
    properties = PROPERTIES
    connect = CONNECT
    strimzi = STRIMZI


def config(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help=FILES, show_default=False),
    ],
    worker: WorkerFile = None,
    key: Annotated[
        str | None,
        typer.Option("--explain", metavar="KEY", help="Show where the value of a setting comes from, for each flow."),
    ] = None,
    to: Annotated[Format | None, typer.Option("--to", help="Print the same flows in another format.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="List the settings that have no effect, and why.")
    ] = False,
) -> None:
    """Show the clusters and flows of FILE as they would run. Connects to no cluster.

    Secrets are never shown, and --to keeps references such as ${env:NAME} unresolved. The exit status is 2 if FILE
    cannot be run, or KEY is not a setting.

    Example: heliograph config mm2.properties --explain topics

    Example: heliograph config mm2.properties --to connect
    """
    if key is not None and to is not None:
        fail("--explain and --to cannot be combined", 2)
    try:
        # Secrets may be on the machines that run this, and not here.
        document = dataclasses.replace(read_all(with_worker(files, worker)), may_lack_secrets=True)
        deployment = assemble(document)
        if key is not None:
            explanation = explain(document, deployment, key)
            typer.echo(json.dumps(dataclasses.asdict(explanation)) if as_json else explained(explanation))
            return
    except ConfigError as error:
        for warning in error.warnings:
            typer.echo(f"warning: {warning}", err=True)
        fail(str(error), 2)
    for warning in deployment.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if to is not None:
        converted = convert(document, deployment, to.value)
        for text in (*converted.left_out, *bare_secrets(document)):
            typer.echo(f"note: {text}", err=True)
        typer.echo(converted.text, nl=False)
        return
    if as_json:
        typer.echo(json.dumps(outline(document, deployment)))
        return
    for note in shown_notes(deployment.notes, verbose):
        typer.echo(f"note: {note}", err=True)
    typer.echo("\n".join(described(document, deployment)))


def explained(explanation: Explanation) -> str:
    lines = [f"{explanation.key}: {explanation.about}"]
    if explanation.acted:
        lines.append(f"It has no effect: {explanation.acted}")
    lines.append(f"Read from: {', '.join(explanation.places)}" + (" (first wins)" * (len(explanation.places) > 1)))
    for origin in explanation.origins:
        lines.append("")
        if origin.value is None:
            lines.append(f"{origin.subject}: not set, and there is no default")
            continue
        lines.append(f"{origin.subject}: {origin.value.value or '(empty)'}")
        lines.append(f"    {_where(origin.value)}")
        lines += [f"    wins over {other.value or '(empty)'}, {_where(other)}" for other in origin.overridden]
    return "\n".join(lines)


def _where(value: ExplainedValue) -> str:
    return f"from {value.place}, {value.written}" if value.written else "the default"


def described(document: Settings, deployment: Deployment) -> list[str]:
    lines = [f"clusters of {deployment.file}"]
    for cluster in deployment.clusters.values():
        lines.append(f"  {cluster.alias}: {', '.join(addresses(cluster)) or _unresolved_address(document, cluster)}")
        lines += [f"    {name} = {value}" for name, value in _settings_of(document, cluster)]
    for flow in deployment.flows:
        lines += ["", *_flow(flow, deployment.paused_parts(flow))]
    for beat in deployment.heartbeat_only_flows:
        every = _every(beat.heartbeats.every)
        lines += ["", f"{beat.name}: writes heartbeats only, {every}"]
    return lines


def _unresolved_address(document: Settings, cluster: Cluster) -> str:
    entry = document.find(BOOTSTRAP_SERVERS, cluster.alias, cluster.alias)
    return "no address" if entry is None else str(entry.value)


def _settings_of(document: Settings, cluster: Cluster) -> list[tuple[str, str]]:
    """The settings of a cluster in the file that have an effect, except its address."""
    return [
        (key.name, shown(key.name, entry.value))
        for key, entry in document.entries.items()
        if key.scope is Scope.CLUSTER and key.owner == cluster.alias and key.name != BOOTSTRAP_SERVERS.name
        if (match := catalogue.find(key.scope, key.name)) is not None and match.supported
    ]


def _flow(flow: Flow, paused: Collection[str]) -> list[str]:
    parts = [
        f"{description} (not now: paused or stopped)" if part in paused else description
        for part, description in _PARTS.items()
        if part in flow.parts
    ]
    rows = [
        ("topics", _names(flow.topics)),
        ("mirror of 'x'", f"'{flow.mirror_name('x')}', by {_policy(flow.policy)}"),
    ]
    if flow.connector_aliases is not None:
        rows.append(
            ("aliases", f"'{flow.aliases[0]}' for {flow.source.alias}, '{flow.aliases[1]}' for {flow.target.alias}")
        )
    if SOURCE in flow.parts:
        rows += [
            ("new mirrors", _new_mirrors(flow)),
            ("new topics looked for", _every(flow.refresh_topics_every)),
            ("topic settings", _topic_settings(flow)),
            ("access rules", _every(flow.topic_sync.acls_every)),
            ("offset syncs", _offset_syncs(flow)),
            ("work in pieces", f"{flow.tasks_max} at most"),
            ("aborted records", "left out" if flow.reading.committed_only else "copied"),
            *data_path(flow),
        ]
    if CHECKPOINT in flow.parts:
        rows += [
            ("groups", _names(flow.groups.names)),
            ("new groups looked for", _every(flow.groups.refresh_every)),
            ("checkpoints", _every(flow.groups.checkpoints_every)),
            ("group offsets set", _every(flow.groups.sync_every)),
        ]
    if HEARTBEAT in flow.parts:
        rows.append(("heartbeats", _every(flow.heartbeats.every)))
    return [f"{flow.name}: {', '.join(parts)}", *(f"  {name + ':':<23}{value}" for name, value in rows)]


def _names(names: Matches) -> str:
    if not isinstance(names, NameFilter):
        return f"by {class_name(names)}"
    included = ", ".join(names.include) or "none"
    return f"{included}; but not {', '.join(names.exclude)}" if names.exclude else included


def _topic_settings(flow: Flow) -> str:
    every = flow.topic_sync.configs_every
    return _every(every) if every is None else f"{_every(every)}, {_left_alone(flow.topic_sync.exclude)}"


def _left_alone(names: Matches) -> str:
    if isinstance(names, AllBut):
        return f"those picked by {class_name(names.but)}"
    return (
        "all but those excluded by default"
        if names == DEFAULT_CONFIG_PROPERTIES_EXCLUDE
        else f"all but {_names(names)}"
    )


def _policy(policy: ReplicationPolicy) -> str:
    separator = getattr(policy, "separator", None)
    return class_name(policy) + (f", separator '{separator}'" if isinstance(separator, str) else "")


def _new_mirrors(flow: Flow) -> str:
    replicas = (
        "replicas as the target decides"
        if flow.replication_factor < 0
        else _counted(flow.replication_factor, "replica")
    )
    least = f", {_counted(flow.least_partitions, 'partition')} at least" if flow.least_partitions else ""
    return replicas + least


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _offset_syncs(flow: Flow) -> str:
    if not flow.offset_syncs.enabled:
        return "none"
    cluster = flow.target if flow.offset_syncs.on_target else flow.source
    after = (
        f"every {flow.offset_syncs.lag_max} records at the latest"
        if flow.offset_syncs.lag_max > 1
        else "as often as possible"
    )
    return f"to {cluster.alias}, {after}"


def _every(seconds: float | None) -> str:
    return "never" if seconds is None else f"every {seconds:g} s"
