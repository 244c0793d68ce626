"""Not faster than asked for: the bytes per second that a lease may fetch."""

import asyncio
import time

# What was left unused is not saved up for longer than this, and one fetch brings no more than that.
_BURST = 0.5
_LEAST = 64 * 1024


class RateLimiter:
    def __init__(self, bytes_per_second: float) -> None:
        self.rate = bytes_per_second  # may be changed at any time; 0: no limit
        self._free_at = 0.0

    def most(self, size: int) -> int:
        """What to fetch at once where so much were possible."""
        return min(size, max(_LEAST, int(self.rate * _BURST))) if self.rate else size

    async def wait(self) -> None:
        """Until what was fetched so far is within the limit."""
        pause = self._free_at - time.monotonic() if self.rate else 0.0
        if pause > 0:
            await asyncio.sleep(pause)

    def spent(self, size: int) -> None:
        if self.rate and size:
            self._free_at = max(self._free_at, time.monotonic() - _BURST) + size / self.rate
