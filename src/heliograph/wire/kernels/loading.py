"""Loads the compiled loops into a process that copies.

    python -m heliograph.wire.kernels.loading

compiles them ahead of time for this environment and processor; otherwise the first process that copies does.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

_lock = threading.Lock()
_join: Callable[..., Any] | None = None
_is_started = False


def compiled_join() -> Callable[..., Any] | None:
    """`joining.join`; None as long as it is not loaded."""
    return _join


def load_in_background() -> None:
    """Load the compiled loops once per process. Loading takes half a second, compiling some seconds; copying begins
    without them."""
    global _is_started
    with _lock:
        if not _is_started:
            _is_started = True
            threading.Thread(target=load, name="load-kernels", daemon=True).start()


def load() -> bool:
    """Load the compiled loops now. False, and a log line, if that is not possible here."""
    global _join, _is_started
    begin = time.monotonic()
    try:
        from heliograph.wire.kernels.joining import join
    except Exception as error:  # numba is missing, or cannot compile here
        log.info("compiled loops cannot be used, copying takes more CPU without them: %r", error)
        return False
    _join, _is_started = join, True
    log.debug("compiled loops loaded in %.1f s", time.monotonic() - begin)
    return True


if __name__ == "__main__":
    sys.exit(0 if load() else 1)
