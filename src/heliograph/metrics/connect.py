"""Connect's metrics of connectors and tasks, by Strimzi's names."""

from collections.abc import Mapping

from heliograph.copy.work import MirrorPartition
from heliograph.metrics import definitions as of
from heliograph.metrics.sheet import Sheet
from heliograph.service.connector_states import TaskStatus
from heliograph.service.flow import Task
from heliograph.service.measures import Measure


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
    """What the source connector's tasks have copied."""
    known: dict[MirrorPartition, Measure] = {one.partition: one for one in measures}
    for number, task in enumerate(tasks):
        tallies = [known[one].tally for one in task.partitions if one in known]
        records = sum(tally.records for tally in tallies if tally is not None)
        rate = sum(tally.records_lately.per_second() for tally in tallies if tally is not None)
        for metric, value in (
            (of.WRITE_TOTAL, records),
            (of.POLL_TOTAL, records),
            (of.WRITE_RATE, rate),
            (of.POLL_RATE, rate),
        ):
            sheet.put(metric, value, connector, str(number))
