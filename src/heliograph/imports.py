"""Makes the import of many modules faster."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def many_imports() -> Iterator[None]:
    """Around imports of hundreds of modules. What they create stays, so looking for garbage among it is in vain: it
    takes a quarter of the time, and is left out for good."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
