"""The function that Spark runs in its Python workers: one lease per task."""

import gc
import logging
import sys
from collections.abc import Iterable, Iterator

from pyspark import TaskContext

from heliograph.copy.copier import run_lease
from heliograph.copy.log_levels import use_levels
from heliograph.copy.work import Outcome
from heliograph.engine.sealing import Seal

_LOG_FORMAT = "%(levelname)s %(name)s %(flow)s %(message)s"  # parsed by the driver if the worker is on its machine

_is_prepared = False
_flow_name = "-"


class LeaseTask:
    """Runs the lease of one Spark partition."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def __call__(self, items: Iterable[bytes]) -> Iterator[Outcome]:
        _prepare()
        task = TaskContext.get()
        assert task is not None
        global _flow_name
        for sealed in items:
            work = self._seal.open(sealed)
            _flow_name = work.flow.name
            use_levels(work.log_levels)
            yield run_lease(work, task.attemptNumber())


def _prepare() -> None:
    """Once per worker process: PySpark collects garbage after each task, which takes 20 ms without the freeze."""
    global _is_prepared
    if not _is_prepared:
        handler = logging.StreamHandler(sys.stderr)
        handler.addFilter(_add_flow)
        logging.basicConfig(handlers=[handler], level=logging.INFO, format=_LOG_FORMAT)
        gc.collect()
        gc.freeze()
        _is_prepared = True


def _add_flow(record: logging.LogRecord) -> bool:
    record.flow = _flow_name
    return True
