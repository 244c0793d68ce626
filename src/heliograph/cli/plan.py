"""The output of `heliograph run --plan`."""

import asyncio
import dataclasses
import json
from collections.abc import Iterator

import typer

from heliograph.cli.screen import number
from heliograph.config import Deployment
from heliograph.service.flow_plan import FlowPlan, plan_flow


def show_plan(deployment: Deployment, as_json: bool) -> None:
    """Reads both clusters of every flow, and changes nothing."""

    async def ask() -> list[FlowPlan]:
        copying = (*deployment.flows, *deployment.flows_elsewhere)
        return list(await asyncio.gather(*(plan_flow(flow, copying) for flow in deployment.running_flows)))

    plans = asyncio.run(ask())
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(plan) for plan in plans]))
        return
    for plan in plans:
        typer.echo(f"{plan.flow}:")
        for line in _lines(plan) or ["nothing to create, change or copy"]:
            typer.echo(f"  {line}")
    running = {plan.flow for plan in plans}
    for flow in deployment.all_flows:
        if flow.name not in running:
            typer.echo(f"{flow.name}:\n  does not run: its connectors are paused or stopped")
    typer.echo("Nothing was changed.")


def _lines(plan: FlowPlan) -> list[str]:
    return [*_topics(plan), *_records(plan), *(f"not known: {text}" for text in plan.not_known)]


def _topics(plan: FlowPlan) -> Iterator[str]:
    for name in plan.internal:
        yield f"create internal topic {name}"
    for mirror, partitions in sorted(plan.create.items()):
        yield f"create mirror {mirror} with {partitions} partitions"
    for mirror, partitions in sorted(plan.grow.items()):
        yield f"grow mirror {mirror} to {partitions} partitions"
    for mirror, changes in sorted(plan.settings.items()):
        for key, value in sorted(changes.items()):
            yield f"change mirror {mirror}: {key} {'to its default' if value is None else f'= {value}'}"
    if plan.access_rules:
        yield f"create {plan.access_rules} access rules"


def _records(plan: FlowPlan) -> Iterator[str]:
    for text in plan.taken_over:
        yield f"take over from MirrorMaker 2: {text}"
    for partition, why in sorted(plan.refused.items()):
        yield f"NOT copied: {partition}: {why}"
    if plan.copy:
        most = sorted(plan.copy.items(), key=lambda item: -item[1])
        yield f"copy {number(sum(plan.copy.values()))} offsets of {len(plan.copy)} topics"
        for topic, count in most[:10]:
            yield f"  {topic}: {number(count)}"
        if len(most) > 10:
            yield f"  and {len(most) - 10} more"
    if plan.groups:
        yield f"translate offsets of up to {plan.groups} consumer groups"
