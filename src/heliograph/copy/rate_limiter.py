"""Limits the bytes per second that a lease fetches."""

import asyncio
import time

# Unused bytes are saved up for this long, and one fetch brings no more than that.
_BURST = 0.5
_MIN_FETCH = 64 * 1024


class RateLimiter:
    def __init__(self, bytes_per_second: float) -> None:
        self.rate = bytes_per_second  # may be changed at any time; 0: no limit
        self._free_at = 0.0

    def limit(self, size: int) -> int:
        """How much of `size` to fetch at once."""
        return min(size, max(_MIN_FETCH, int(self.rate * _BURST))) if self.rate else size

    async def wait(self) -> None:
        """Wait until what was fetched so far is within the limit."""
        pause = self._free_at - time.monotonic() if self.rate else 0.0
        if pause > 0:
            await asyncio.sleep(pause)

    def spent(self, size: int) -> None:
        if self.rate and size:
            self._free_at = max(self._free_at, time.monotonic() - _BURST) + size / self.rate
