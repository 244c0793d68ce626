"""Heliograph's own metrics: of flows, their leases and jobs, their topics."""

import time
from collections import Counter
from collections.abc import Iterable

from heliograph.control.group_sync import REFUSED, Verdict
from heliograph.copy.classified import REENCODE_REASONS
from heliograph.copy.counts import AS_IT_IS, Amount, Counts
from heliograph.metrics import definitions as of
from heliograph.metrics.bounds import Detail
from heliograph.metrics.sheet import Sheet
from heliograph.metrics.totals import Totals, totals_by
from heliograph.model.flow import CHECKPOINT, SOURCE
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.flow_supervisor import FlowSupervisor
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.measures import Measure
from heliograph.wire.batches import CODECS

_FLOW_STATES = ("running", "starting", "paused", "failed")
_PARTITION_STATES = ("starting", "aligning", "copying", "caught-up", "waiting", "stopped", "paused")
# These have a series from the start: for Prometheus, a counter that begins at 1 has not increased.
_KINDS = (
    *("data-loss", "source-truncated", "recreated-topic", "mirror-recreated", "mirror-truncated", "foreign-writer"),
    *("parked", "limit-raised", "offsets-not-kept", "copied-twice"),
)
_REASONS = (Verdict.ACTIVE, Verdict.UNREADABLE, REFUSED)
LEVELS = ("INFO", "WARNING", "ERROR")


def put_state(sheet: Sheet, flow: str, deployed: FlowSupervisor | None, fits: bool) -> None:
    now = _state(deployed, fits)
    for state in _FLOW_STATES:
        sheet.put(of.FLOW_STATE, state == now, flow, state)


def _state(deployed: FlowSupervisor | None, fits: bool) -> str:
    if not fits or (deployed is not None and deployed.trouble):
        return "failed"
    parts = deployed.wanted.parts if deployed is not None and deployed.wanted is not None else frozenset()
    if deployed is None or not parts:
        return "paused"
    runs = deployed.is_copying if SOURCE in parts else any(map(deployed.runs_part, parts))
    return "running" if runs else "starting"


def put_copying(sheet: Sheet, runner: FlowRunner, measures: list[Measure], detail: Detail) -> None:
    status, name = runner.view.status(), runner.flow.name
    sheet.put(of.MIRRORS, status.mirrors, name)
    sheet.put(of.TOPICS_FAILED, len(status.failed_topics), name)
    sheet.put(of.DRIFT, runner.view.too_wide, name, "partitions")
    for state in (*_PARTITION_STATES, *(status.states.keys() - set(_PARTITION_STATES))):
        sheet.put(of.PARTITIONS, status.states.get(state, 0), name, state)
    for (reason, final), count in Counter((refusal.reason, refusal.final) for refusal in status.refusals).items():
        sheet.put(of.REFUSALS, count, name, reason, str(final).lower())
    sheet.put(of.COPIED_RECORDS, status.records, name)
    sheet.put(of.COPIED_BYTES, status.size, name)
    _put_counts(sheet, name, runner.view.counts())
    for kind in (*_KINDS, *(status.events.keys() - set(_KINDS))):
        sheet.put(of.NOTICES, status.events.get(kind, 0), name, kind)
        sheet.put(of.NOTICE_RECORDS, status.records_of_events.get(kind, 0), name, kind)
    sheet.put(of.OPEN_SECONDS, runner.view.open_for, name)
    sheet.put(of.OPEN_PARTITIONS, len(status.stalled), name)
    sheet.put(of.OPEN_RECORDS, sum(transaction.count for transaction in status.stalled), name)
    _put_leases(sheet, runner)
    _put_lag(sheet, runner, measures, detail)


def _put_counts(sheet: Sheet, flow: str, counts: Counts) -> None:
    by_codec = {codec: Amount() for codec in CODECS.values()}
    by_how = {how: Amount() for how in (AS_IT_IS, *REENCODE_REASONS)}
    for (codec, how), amount in counts.appended.items():
        by_codec.setdefault(codec, Amount()).add(amount)
        by_how[how].add(amount)
    for codec, amount in by_codec.items():
        sheet.put(of.CODEC_BATCHES, amount.batches, flow, codec)
        sheet.put(of.CODEC_BYTES, amount.size, flow, codec)
    for how, amount in by_how.items():
        sheet.put(of.ENCODED_BATCHES, amount.batches, flow, how)
        sheet.put(of.ENCODED_RECORDS, amount.records, flow, how)
        sheet.put(of.ENCODED_BYTES, amount.size, flow, how)
    for side, seconds in counts.throttled.items():
        sheet.put(of.THROTTLED, seconds, flow, side)


def _put_leases(sheet: Sheet, runner: FlowRunner) -> None:
    leases, name = runner.view.leases(), runner.flow.name
    sheet.put(of.LEASES, leases.running, name)
    sheet.put(of.LEASES_WANTED, leases.wanted, name)
    sheet.put(of.LEASE_AGE, leases.oldest, name)
    sheet.put(of.LEASE_FAILURES, leases.failures, name)
    sheet.put(of.LEASE_RENEWALS, leases.renewals, name)


def _put_lag(sheet: Sheet, runner: FlowRunner, measures: list[Measure], detail: Detail) -> None:
    name = runner.flow.name
    topics = totals_by(lambda measure: measure.partition.topic, measures)
    sheet.put(of.LAG_RECORDS, sum(totals.lag for totals in topics.values()), name)
    sheet.put(of.LAG_BYTES, sum(totals.lag_bytes for totals in topics.values()), name)
    sheet.put(of.LAG_SECONDS, max((totals.seconds_behind for totals in topics.values()), default=0.0), name)
    margins = [totals.margin for totals in topics.values() if totals.margin is not None]
    if margins:
        sheet.put(of.MARGIN, min(margins)[0], name)
    landed = max((totals.landed for totals in topics.values()), default=0.0)
    if landed:
        sheet.put(of.SINCE_COPY, max(0.0, time.time() - landed), name)
    for topic, totals in topics.items():
        if totals.newest and runner.flow.policy.is_heartbeats_topic(topic):
            sheet.put(of.HEARTBEAT_AGE, max(0.0, time.time() - totals.newest), name, topic)
        if detail.topics:
            _put_topic(sheet, name, topic, totals)
    sheet.put(of.TOPICS_LEFT_OUT, 0 if detail.topics else len(topics), name)
    if detail.own_partitions:
        for measure in measures:
            labels = name, measure.partition.topic, str(measure.partition.partition)
            sheet.put(of.PARTITION_LAG, measure.lag, *labels)
            sheet.put(of.PARTITION_LAG_SECONDS, measure.stats.seconds_behind() if measure.stats else 0.0, *labels)


def _put_topic(sheet: Sheet, flow: str, topic: str, totals: Totals) -> None:
    sheet.put(of.TOPIC_LAG_RECORDS, totals.lag, flow, topic)
    sheet.put(of.TOPIC_LAG_BYTES, totals.lag_bytes, flow, topic)
    sheet.put(of.TOPIC_LAG_SECONDS, totals.seconds_behind, flow, topic)
    if totals.margin is not None:
        margin, partition = totals.margin
        sheet.put(of.TOPIC_MARGIN, margin, flow, topic, str(partition))
    if (since := totals.since_copy) is not None:
        sheet.put(of.TOPIC_SINCE_COPY, since, flow, topic)
    sheet.put(of.TOPIC_RECORDS, totals.records, flow, topic)
    sheet.put(of.TOPIC_BYTES, totals.size, flow, topic)
    sheet.put(of.TOPIC_PARTITIONS, totals.partitions, flow, topic)
    sheet.put(of.TOPIC_STOPPED, totals.stopped, flow, topic)


def put_keeping(sheet: Sheet, syncers: FlowSyncers) -> None:
    name = syncers.flow.name
    for job in syncers.jobs():
        sheet.put(of.SYNC_FAILING, job.failing, name, job.name)
        if job.since is not None:
            sheet.put(of.SYNC_SINCE, job.since, name, job.name)
    sheet.put(of.REQUESTS, syncers.requests, name)
    for what, count in syncers.drift().items():
        sheet.put(of.DRIFT, count, name, what)
    if CHECKPOINT not in syncers.flow.parts:
        return
    groups = syncers.synced_groups
    reasons = Counter(groups.reasons.values())
    sheet.put(of.GROUPS, len(syncers.checkpoints.groups), name)
    sheet.put(of.GROUPS_SYNCED, len(groups.written) + len(groups.unchanged), name)
    for reason in _REASONS:
        sheet.put(of.GROUPS_NOT_SYNCED, reasons[reason], name, reason)
    sheet.put(of.UNTRANSLATED, syncers.untranslated, name)
    sheet.put(of.CHECKPOINTS, syncers.checkpoints_written, name)


def put_events(sheet: Sheet, counts: Counter[tuple[str, str]], flows: Iterable[str]) -> None:
    """Events of each flow, and those of no flow."""
    for flow in ("", *flows):
        for level in LEVELS:
            sheet.put(of.EVENTS, counts[flow, level], flow, level)
