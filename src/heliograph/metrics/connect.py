"""Connect's metrics of connectors and tasks, and those of the tasks' producers and consumers."""

from collections.abc import Collection, Mapping

from heliograph.metrics import mbeans as of
from heliograph.metrics.sheet import Sheet
from heliograph.model.partitions import MirrorPartition
from heliograph.service.connector_states import TaskStatus
from heliograph.service.flow_view import Task
from heliograph.service.measures import Leases, Measure
from heliograph.service.partition_stats import Errors
from heliograph.service.task_stats import TaskStats

_CLIENT = "heliograph"


def put_connectors(sheet: Sheet, connectors: Mapping[str, list[TaskStatus]]) -> None:
    sheet.put(of.CONNECTORS, len(connectors))
    sheet.put(of.TASKS, sum(map(len, connectors.values())))
    sheet.put(of.ASSIGNED_CONNECTORS, len(connectors), _CLIENT)
    sheet.put(of.ASSIGNED_TASKS, sum(map(len, connectors.values())), _CLIENT)
    for name, tasks in connectors.items():
        states = [task.status.state.lower() for task in tasks]
        for state, metric in of.TASKS_OF.items():
            sheet.put(metric, len(states) if state == "total" else states.count(state), name)
        for task, state in zip(tasks, states, strict=True):
            sheet.put(of.TASK_STATUS, 1, name, str(task.id), state)


def put_tasks(sheet: Sheet, flow: str, connector: str, tasks: list[Task], measures: list[Measure]) -> None:
    """What the source connector's tasks do."""
    known: dict[MirrorPartition, Measure] = {measure.partition: measure for measure in measures}
    for number, task in enumerate(tasks):
        partition_stats = [known[partition].stats for partition in task.partitions if partition in known]
        records = sum(stats.records for stats in partition_stats if stats is not None)
        rate = sum(stats.records_lately.per_second() for stats in partition_stats if stats is not None)
        for metric, value in (
            (of.WRITE_TOTAL, records),
            (of.POLL_TOTAL, records),
            (of.WRITE_RATE, rate),
            (of.POLL_RATE, rate),
        ):
            sheet.put(metric, value, connector, str(number))
        _put_errors(sheet, connector, number, [stats.errors for stats in partition_stats if stats is not None])
        if task.stats is not None:
            sheet.put(of.RUNNING_RATIO, task.running_ratio, connector, str(number))
            _put_work(sheet, task.stats, connector, str(number))
            _put_clients(sheet, task.stats, f"connector-producer-{connector}-{number}", f"{flow}|{connector}-{number}")


def _put_work(sheet: Sheet, stats: TaskStats, connector: str, number: str) -> None:
    lately, largest, slowest = stats.lately(), stats.largest_batches.spread(), stats.report_times.spread()
    failed = _ratio(lately.reports_failed, lately.reports)
    for metric, value in (
        (of.BATCH_SIZE, _ratio(lately.records, lately.batches)),
        (of.BATCH_SIZE_MAX, None if largest is None else largest.most),
        (of.COMMIT_TIME, _ratio(lately.report_seconds * 1000, lately.reports)),
        (of.COMMIT_TIME_MAX, None if slowest is None else slowest.most * 1000),
        (of.COMMIT_FAILURE, failed),
        (of.COMMIT_SUCCESS, None if failed is None else 1 - failed),
        (of.ACTIVE, 0 if stats.recent is None else stats.recent.active),
        (of.RETRIES, stats.total.retries),
    ):
        sheet.put(metric, value, connector, number)


def _put_clients(sheet: Sheet, stats: TaskStats, producer: str, consumer: str) -> None:
    lately = stats.lately()
    sheet.put(of.PRODUCER_BATCH_SIZE, _ratio(lately.size, lately.batches), producer)
    sheet.put(of.REQUEST_LATENCY, _ratio(lately.append_seconds * 1000, lately.appends), producer)
    sheet.put(of.OUTGOING, stats.total.size, producer)
    sheet.put(of.BUFFER_AVAILABLE, None if stats.recent is None else stats.recent.free, producer)
    sheet.put(of.INCOMING, stats.total.fetched, f"{consumer}|replication-consumer")


def _ratio(amount: float, count: int) -> float | None:
    return amount / count if count else None


def _put_errors(sheet: Sheet, connector: str, number: int, errors: list[Errors]) -> None:
    refused, parked = sum(error.refused for error in errors), sum(error.parked for error in errors)
    for metric, value in (
        (of.RECORD_ERRORS, refused),
        (of.RECORD_FAILURES, refused),
        (of.RECORDS_SKIPPED, parked),
        (of.DEAD_LETTERS, parked),
        (of.ERRORS_LOGGED, sum(error.logged for error in errors)),
        (of.LAST_ERROR, max((error.last for error in errors), default=0.0) * 1000),
    ):
        sheet.put(metric, value, connector, str(number))


def put_rebalances(sheet: Sheet, flows: Collection[Leases]) -> None:
    sheet.put(of.REBALANCES, sum(flow.assignment_changes for flow in flows))
    sheet.put(of.REBALANCING, any(flow.running < flow.wanted for flow in flows))
    if flows:
        sheet.put(of.SINCE_REBALANCE, min(flow.seconds_since_change for flow in flows) * 1000)
