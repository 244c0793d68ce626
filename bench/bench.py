"""The benchmark: Heliograph, MirrorMaker 2 and a copier on franz-go copy the same topics, one after the other.

It starts and warms up two fresh clusters. Each workload's topic is written once; then the tools mirror it in turn, for
several rounds, and everything a tool has written is deleted before the next one starts. `measuring` and `latency`
describe what is measured and how, `workloads` what is copied, `tools` by which tools. With --profile, `sampling` and
`time_kinds` say where the time goes. Ends with a report, and with status 1 if any tool failed anywhere.
"""

import argparse
import asyncio
import datetime
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import franz_go
import latency
import measuring
import report
import sampling
from clusters import Trouble, clear, started
from logfiles import Survey
from machine import environment
from measuring import PATIENCE, Patience
from processes import Machine
from relay import relay
from results import BOUND_TITLES, Bound, Copy, Limit, Profile, Results, Source
from stage import Stage
from time_kinds import summarize
from tools import TOOLS, Kind, Tool, heliograph_with
from workloads import WORKLOADS, Workload, produce_only, warm_up, write

from heliograph.sandbox.processes import Processes
from heliograph.wire.errors import WireError

_REPORTS = Path(__file__).parent.parent / "docs" / "benchmarks"
_LATENCY_TOOLS = ("heliograph", "franz-go", "mm2", "mm2-tuned")
_QUICK_TOOLS = ("heliograph", "franz-go", "mm2", "mm2-tuned")


@dataclass(frozen=True)
class Plan:
    """What to run. `warm_up` is records per cluster and turn; `warm_up_copies`: rounds that do not count."""

    workloads: tuple[Workload, ...] = WORKLOADS
    tools: tuple[Tool, ...] = TOOLS
    rounds: int = 3
    scale: float = 1.0
    warm_up: int = 4_000_000
    warm_up_copies: bool = True
    limits: bool = True
    latency_seconds: float = 20.0
    profile: bool = False
    patience: Patience = PATIENCE


QUICK = Plan(
    workloads=tuple(workload for workload in WORKLOADS if workload.number in (1, 3)),
    tools=tuple(tool for tool in TOOLS if tool.key in _QUICK_TOOLS),
    rounds=1,
    scale=0.2,
    warm_up=1_000_000,
    warm_up_copies=False,
    latency_seconds=0.0,
    patience=Patience(start=60.0, stall=25.0),
)
SHORTEST = Plan(
    workloads=WORKLOADS[:1],
    tools=tuple(tool for tool in TOOLS if tool.key in ("heliograph", "mm2")),
    rounds=1,
    scale=0.005,
    warm_up=0,
    warm_up_copies=False,
    limits=False,
    latency_seconds=0.0,
    patience=Patience(start=60.0, stall=25.0),
)


def run(plan: Plan) -> Results:
    """Runs a plan, from the start of the clusters to their end."""
    began, before = time.monotonic(), Machine.now()
    plan, left_out = _possible(plan)
    results = Results(
        environment=environment() | ({"franz-go": franz_go.version()} if _has_franz_go(plan) else {}),
        titles={tool.key: tool.title for tool in plan.tools},
        latency_seconds=plan.latency_seconds,
        left_out=left_out,
    )
    _say("starting two clusters")
    far = any(workload.far for workload in plan.workloads)
    tls = any(workload.tls for workload in plan.workloads)
    with started(far, tls) as (sandbox, pair), Processes(folder=sandbox.folder / "tools", remove=False) as processes:
        stage = Stage.of(pair, processes)
        _warm_up(stage, plan)
        for workload in plan.workloads:
            try:
                _measure(stage, plan, workload, results)
            except (Trouble, WireError) as trouble:
                results.troubles.append(f"workload {workload.number}: {trouble}")
                _say(f"  FAILED: {trouble}")
                tidy(stage)
        if plan.latency_seconds:
            _measure_latency(stage, plan, results)
    results.seconds = time.monotonic() - began
    results.steal = Machine.now().steal_since(before)
    return results


def _possible(plan: Plan) -> tuple[Plan, list[str]]:
    """The plan without the tools that cannot run on this machine, and a line for each of them."""
    left_out: list[str] = []
    if _has_franz_go(plan):
        _say("building the copier on franz-go")
        try:
            franz_go.program()
        except franz_go.NotBuilt as reason:
            left_out.append(f"franz-go: {reason}")
            _say(f"  left out: {reason}")
            plan = replace(plan, tools=tuple(tool for tool in plan.tools if tool.kind is not Kind.FRANZ_GO))
    if plan.profile:
        try:
            sampling.check()
        except sampling.NotSampled as reason:
            left_out.append(f"where the time goes: {reason}")
            _say(f"no profiles: {reason}")
            plan = replace(plan, profile=False)
    return plan, left_out


def _has_franz_go(plan: Plan) -> bool:
    return any(tool.kind is Kind.FRANZ_GO for tool in plan.tools)


def shortest() -> Results:
    """For tests: a complete benchmark with very little to copy."""
    return run(SHORTEST)


def _warm_up(stage: Stage, plan: Plan) -> None:
    if plan.warm_up:
        _say("warming up the brokers")
        warm_up(stage.pair, plan.warm_up)


def _measure(stage: Stage, plan: Plan, workload: Workload, results: Results) -> None:
    """All rounds of all tools on one workload."""
    records = max(1, round(workload.records * plan.scale))
    _say(f"workload {workload.number}, {workload.name}: writing {records:,} records")
    began = time.monotonic()
    survey = _written(stage, workload, records)
    results.sources.append(_source(workload, survey, time.monotonic() - began))
    _say(f"  {survey.visible:,} records to copy in {survey.batches:,} batches, {survey.size / 1e6:,.0f} MB")
    tools = [tool for tool in plan.tools if tool.runs(workload)]
    # The code with which a broker encrypts is cold until a tool has connected over TLS.
    if plan.warm_up_copies and (workload is plan.workloads[0] or workload.tls):
        _say("  a round that does not count")
        results.warm_up += [_copy(stage, plan, workload, survey, tool, 0) for tool in tools]
    for number in range(1, plan.rounds + 1):
        if plan.limits:
            results.limits += _measure_limits(stage, workload, survey, records, number)
        # Each round begins with another tool: none always gets the freshest clusters.
        turn = (number - 1) % len(tools) if tools else 0
        for tool in (*tools[turn:], *tools[:turn]):
            results.copies.append(_copy(stage, plan, workload, survey, tool, number))
    if plan.profile:
        profiled = [tool for tool in tools if tool.kind is not Kind.MIRROR_MAKER]
        results.profiles += [_profile(stage, plan, workload, survey, tool) for tool in profiled]
    tidy(stage)


def _written(stage: Stage, workload: Workload, records: int) -> Survey:
    """Writes the workload's topic, in both clusters if it is mirrored both ways. Returns the sum."""
    total = asyncio.run(write(workload, stage.pair.source, records))
    if workload.two_way:
        other = asyncio.run(write(workload, stage.pair.target, records))
        if other != total:
            raise Trouble(f"the clusters have different topics {workload.topic}: {total}, {other}")
        total.add(other)
    return total


def _measure_limits(stage: Stage, workload: Workload, survey: Survey, records: int, number: int) -> Iterator[Limit]:
    """What bounds every tool, measured in the same round as the tools."""
    try:
        relayed = relay(survey.size, stage.proxy_to) if workload.far else relay(survey.size)
    except OSError as error:
        raise Trouble(f"the relay failed: {error}") from error
    measured = [(Bound.RELAY, survey.visible / relayed.seconds, relayed.cpu / survey.visible * 1e6)]
    pool = workload.pool
    for bound, per_batch in ((Bound.PRODUCE_LARGE, pool.per_large_batch), (Bound.PRODUCE, pool.per_batch)):
        if per_batch is not None:
            measured.append((bound, *asyncio.run(produce_only(workload, per_batch, stage.pair.target, records))))
            tidy(stage, workload)
    for bound, rate, cpu in measured:
        _say(f"  round {number}  {BOUND_TITLES[bound]:<40} {rate:>11,.0f} records/s")
        yield Limit(workload.number, number, bound, rate, cpu)


def _source(workload: Workload, survey: Survey, seconds: float) -> Source:
    return Source(
        workload.number,
        workload.name,
        workload.about,
        workload.partitions,
        survey.visible,
        survey.batches,
        survey.size,
        survey.aborted,
        survey.holes,
        seconds,
    )


def _copy(stage: Stage, plan: Plan, workload: Workload, survey: Survey, tool: Tool, number: int) -> Copy:
    copied = measuring.copy(stage, workload, survey, tool, number, plan.patience)
    tidy(stage, workload)
    _say(f"  round {number}  {tool.title:<40} {_outcome(copied)}")
    return copied


def _profile(stage: Stage, plan: Plan, workload: Workload, survey: Survey, tool: Tool) -> Profile:
    """One more round, sampled."""
    result = Profile(workload.number, tool.key)
    try:
        with sampling.recording(stage) as recording:
            number = plan.rounds + 1
            copied = measuring.copy(stage, workload, survey, tool, number, plan.patience, recording.finish)
            summary = summarize(recording.samples, recording.processes)
        samples = len(recording.samples)
        failure = copied.failure or (None if samples else "not one sample")
        rates = replace(result, rate=copied.rate, seconds=copied.seconds, samples=samples, failure=failure)
        result = replace(rates, owners=summary.owners, kinds=summary.kinds, functions=summary.functions)
    except sampling.NotSampled as reason:
        result = replace(result, failure=str(reason))
    tidy(stage, workload)
    outcome = (
        f"FAILED: {result.failure}"
        if result.failure
        else f"{result.rate:>11,.0f} records/s, {result.samples:,} samples"
    )
    _say(f"  profile  {tool.title:<40} {outcome}")
    return result


def _outcome(copied: Copy) -> str:
    if copied.failure:
        return f"FAILED: {copied.failure}"
    return (
        f"{copied.rate:>11,.0f} records/s {copied.bytes_rate / 1e6:>7,.1f} MB/s, core-seconds per million records: "
        f"mirror {copied.mirror_cpu_per_million:5.2f}, brokers {copied.broker_cpu_per_million:5.2f}; "
        f"{copied.peak_memory / 2**20:,.0f} MB"
    )


def _measure_latency(stage: Stage, plan: Plan, results: Results) -> None:
    tools = [tool for tool in plan.tools if tool.key in _LATENCY_TOOLS]
    for rate, number in product(latency.RATES, range(1, plan.rounds + 1)):
        _say(f"latency at {rate:,} records/s")
        turn = (number - 1) % len(tools) if tools else 0
        for tool in (*tools[turn:], *tools[:turn]):
            result = latency.measure(stage, tool, rate, number, plan.latency_seconds, plan.patience)
            tidy(stage)
            results.latencies.append(result)
            outcome = (
                f"FAILED: {result.failure}" if result.failure else f"p50 {result.p50:,.1f} ms, p99 {result.p99:,.1f} ms"
            )
            _say(f"  round {number}  {tool.title:<40} {outcome}")


def tidy(stage: Stage, workload: Workload | None = None) -> None:
    """Deletes all topics on both sides but for the workload's own, and waits until they are gone."""
    own = (workload.topic,) if workload is not None else ()
    asyncio.run(clear(stage.pair.target, own if workload is not None and workload.two_way else ()))
    asyncio.run(clear(stage.pair.source, own))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _plan(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else Plan()
    if options.workloads:
        plan = replace(plan, workloads=_chosen_workloads(options.workloads))
    if options.tools:
        plan = replace(plan, tools=_chosen_tools(options.tools))
    variants = tuple(heliograph_with(number, settings) for number, settings in enumerate(options.variants, 1))
    plan = replace(plan, tools=plan.tools + variants)
    if options.mm2_tasks is not None:
        tuned = [replace(tool, tasks=options.mm2_tasks) if tool.producer else tool for tool in plan.tools]
        plan = replace(plan, tools=tuple(tuned))
    if options.rounds is not None:
        plan = replace(plan, rounds=options.rounds)
    if options.scale is not None:
        plan = replace(plan, scale=options.scale)
    if options.latency is not None:
        plan = replace(plan, latency_seconds=options.latency)
    return replace(plan, profile=options.profile)


def _chosen_workloads(text: str) -> tuple[Workload, ...]:
    known = {str(workload.number): workload for workload in WORKLOADS}
    return tuple(known[number] for number in _chosen(text, list(known), "workload"))


def _chosen_tools(text: str) -> tuple[Tool, ...]:
    known = {tool.key: tool for tool in TOOLS}
    return tuple(known[key] for key in _chosen(text, list(known), "tool"))


def _chosen(text: str, known: Sequence[str], what: str) -> list[str]:
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in chosen if name not in known]:
        raise argparse.ArgumentTypeError(f"no such {what}: {', '.join(unknown)}; there are {', '.join(known)}")
    return chosen


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="workloads 1 and 3, one small round; nothing is written")
    parser.add_argument("--workloads", metavar="1,3", help="only these")
    parser.add_argument("--tools", metavar="NAMES", help=f"only these of {', '.join(tool.key for tool in TOOLS)}")
    parser.add_argument(
        "--with",
        dest="variants",
        action="append",
        default=[],
        metavar="SETTINGS",
        help="also Heliograph with these settings: 'name=value name=value'; may be repeated",
    )
    parser.add_argument(
        "--mm2-tasks", type=_at_least_one, metavar="N", help="tasks.max of the tuned variants of MirrorMaker 2"
    )
    parser.add_argument("--rounds", type=_at_least_one, metavar="N", help="how often each tool copies each workload: 3")
    parser.add_argument("--scale", type=float, metavar="X", help="times the usual number of records")
    parser.add_argument("--latency", type=float, metavar="SECONDS", help="how long each latency run lasts; 0 for none")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="one more round of each workload, of Heliograph and franz-go, that Linux's `perf` samples",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="instead of docs/benchmarks/DATE.md")
    return parser.parse_args(arguments)


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least one")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    try:
        plan = _plan(options)
    except argparse.ArgumentTypeError as error:
        _say(f"bench: {error}")
        return 2
    results = run(plan)
    _say("\n" + report.text(results))
    file = options.report or (None if options.quick else _REPORTS / f"{datetime.date.today().isoformat()}.md")
    if file is not None:
        for path in report.write(results, file):
            _say(f"written: {os.path.relpath(path)}")
    return 1 if results.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
