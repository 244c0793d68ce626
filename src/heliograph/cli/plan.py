"""What `heliograph run --plan` prints."""

import asyncio
import dataclasses
import json
from collections.abc import Iterator

import typer

from heliograph.cli.screen import number
from heliograph.config import Deployment
from heliograph.service.flow_plan import FlowPlan, plan_flow


def show_plan(deployment: Deployment, as_json: bool) -> None:
    """Ask both clusters of every flow, and change nothing."""

    async def ask() -> list[FlowPlan]:
        flows = (*deployment.flows, *deployment.heartbeat_only_flows)
        return list(await asyncio.gather(*(plan_flow(flow, deployment.flows) for flow in flows)))

    plans = asyncio.run(ask())
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in plans]))
        return
    for one in plans:
        typer.echo(f"{one.flow}:")
        for line in _lines(one) or ["nothing to create, to change or to copy"]:
            typer.echo(f"  {line}")
    typer.echo("Nothing was changed.")


def _lines(one: FlowPlan) -> list[str]:
    return [*_topics(one), *_records(one)]


def _topics(one: FlowPlan) -> Iterator[str]:
    for name in one.internal:
        yield f"create internal topic {name}"
    for mirror, partitions in sorted(one.create.items()):
        yield f"create mirror {mirror} with {partitions} partitions"
    for mirror, partitions in sorted(one.grow.items()):
        yield f"grow mirror {mirror} to {partitions} partitions"
    for mirror, changes in sorted(one.settings.items()):
        for key, value in sorted(changes.items()):
            yield f"change mirror {mirror}: {key} {'to its default' if value is None else f'= {value}'}"
    if one.access_rules:
        yield f"create {one.access_rules} access rules"


def _records(one: FlowPlan) -> Iterator[str]:
    for text in one.taken_over:
        yield f"take over from MirrorMaker 2: {text}"
    for partition, why in sorted(one.refused.items()):
        yield f"NOT copied: {partition}: {why}"
    if one.copy:
        most = sorted(one.copy.items(), key=lambda item: -item[1])
        yield f"copy {number(sum(one.copy.values()))} offsets of {len(one.copy)} topics"
        for topic, count in most[:10]:
            yield f"  {topic}: {number(count)}"
        if len(most) > 10:
            yield f"  and {len(most) - 10} more"
    if one.groups:
        yield f"translate offsets of up to {one.groups} consumer groups"
