"""The function that Spark runs in its Python workers: one lease per task."""

import gc
import logging
import sys
from collections.abc import Iterable, Iterator

from pyspark import TaskContext

from heliograph.copy.copier import run_lease
from heliograph.copy.log_levels import use_levels
from heliograph.copy.work import Outcome, Work

_LINE = "%(levelname)s %(name)s %(message)s"  # the driver reads these, where the worker is on its machine

_settled = False


def lease_task(items: Iterable[Work]) -> Iterator[Outcome]:
    """Run the leases of one Spark partition (there is one)."""
    _settle_in()
    task = TaskContext.get()
    assert task is not None
    for work in items:
        use_levels(work.log_levels)
        yield run_lease(work, task.attemptNumber())


def _settle_in() -> None:
    """Once per worker process: PySpark collects garbage after each task, which takes 20 ms without the freeze."""
    global _settled
    if not _settled:
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=_LINE)
        gc.collect()
        gc.freeze()
        _settled = True
