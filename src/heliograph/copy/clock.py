"""The clock of leases. It does not stop while the machine sleeps, as those of other machines do not."""

import time

# Linux only; elsewhere the clock may stop while the machine sleeps.
_SINCE_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)
