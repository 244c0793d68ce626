"""A trace of what leases do: fetches, joining, appends, event loop stalls, garbage collections, and leases as a whole.

With `heliograph run --trace FILE` every lease appends its events to FILE on its own machine, as lines of Chrome's JSON
array format: https://ui.perfetto.dev draws it. Without a file every function here returns at once.
"""

import asyncio
import gc
import itertools
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

log = logging.getLogger(__name__)

FILE_VARIABLE = "HELIOGRAPH_TRACE"  # in the environment of Spark's Python workers
_FLUSH_EVERY = 1.0
_CHECK_EVERY = 0.01
_SHORTEST_STALL = 0.005

_file: TextIO | None = None
_ids = itertools.count(1)
_gc_began = 0.0


@contextmanager
def traced_lease(flow: str, lease: str) -> Iterator[None]:
    """Trace a lease, if a file is named in the environment. One lease runs in a process at a time."""
    global _file
    path = os.environ.get(FILE_VARIABLE)
    if not path:
        yield
        return
    try:
        _file = open(path, "a", encoding="utf-8")  # noqa: SIM115  closed by _stop
    except OSError as error:
        _stop(error)
    _write({"ph": "M", "name": "process_name", "args": {"name": f"{flow}: lease process {os.getpid()}"}})
    gc.callbacks.append(_on_gc)
    begin = time.monotonic()
    try:
        yield
    finally:
        gc.callbacks.remove(_on_gc)
        span("lease", lease, begin)
        _stop()


def _stop(error: OSError | None = None) -> None:
    """Close the trace. If it could not be written, warn; the lease continues."""
    global _file
    file, _file = _file, None
    if error is not None:
        log.warning("the trace cannot be written: %s", error)
    if file is not None:
        with suppress(OSError):
            file.close()


def is_tracing() -> bool:
    return _file is not None


def span(kind: str, name: str, begin: float, **details: Any) -> None:
    """Something that began at this time.monotonic() ends now. Spans of one kind may overlap."""
    if _file is None:
        return
    common = {"cat": kind, "name": name, "id": f"{os.getpid()}-{next(_ids)}"}
    _write({"ph": "b", "ts": begin * 1e6, **common, "args": details})
    _write({"ph": "e", "ts": time.monotonic() * 1e6, **common})


async def watch_loop() -> None:
    """Report when the event loop is late: nothing is read or sent meanwhile."""
    flushed = time.monotonic()
    while _file is not None:
        begin = time.monotonic()
        await asyncio.sleep(_CHECK_EVERY)
        late = time.monotonic() - begin - _CHECK_EVERY
        if late > _SHORTEST_STALL:
            span("stall", f"stall of {late * 1000:.0f} ms", begin + _CHECK_EVERY)
        if begin - flushed > _FLUSH_EVERY and _file is not None:
            flushed = begin
            _flush()


def _on_gc(phase: str, info: dict[str, int]) -> None:
    global _gc_began
    if phase == "start":
        _gc_began = time.monotonic()
    else:
        span("garbage collection", f"generation {info['generation']}", _gc_began)


def _write(event: dict[str, Any]) -> None:
    if _file is not None:
        try:
            _file.write(json.dumps({"pid": os.getpid(), "tid": 0, **event}) + ",\n")
        except OSError as error:
            _stop(error)


def _flush() -> None:
    if _file is not None:
        try:
            _file.flush()
        except OSError as error:
            _stop(error)
