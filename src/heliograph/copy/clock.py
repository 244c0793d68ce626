"""The clock that leases go by: it runs on while the machine sleeps, as those of others do."""

import time

_SINCE_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux; elsewhere the clock may stand still in sleep


def now() -> float:
    return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)
