"""Connect's metrics of connectors and tasks, by Strimzi's names."""

from collections.abc import Collection, Mapping

from heliograph.metrics import definitions as of
from heliograph.metrics.sheet import Sheet
from heliograph.model.partitions import MirrorPartition
from heliograph.service.connector_states import TaskStatus
from heliograph.service.flow_view import Task
from heliograph.service.measures import Leases, Measure
from heliograph.service.partition_stats import Errors


def put_connectors(sheet: Sheet, connectors: Mapping[str, list[TaskStatus]]) -> None:
    sheet.put(of.CONNECTORS, len(connectors))
    sheet.put(of.TASKS, sum(map(len, connectors.values())))
    for name, tasks in connectors.items():
        states = [task.status.state.lower() for task in tasks]
        for state, metric in of.TASKS_OF.items():
            sheet.put(metric, len(states) if state == "total" else states.count(state), name)
        for task, state in zip(tasks, states, strict=True):
            sheet.put(of.TASK_STATUS, 1, name, str(task.id), state)


def put_tasks(sheet: Sheet, connector: str, tasks: list[Task], measures: list[Measure]) -> None:
    """Records and errors of the source connector's tasks."""
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
