"""How many requests one address may send."""

import time
from collections import OrderedDict
from collections.abc import Callable

_ADDRESSES = 10_000  # a bound on memory: the address that has been silent the longest is forgotten
_BURST = 5.0  # seconds of requests at once


class RateLimit:
    """A token bucket for each address."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when they were counted

    def wait(self, address: str, cost: float = 1.0) -> float:
        """Counts a request. Returns the seconds until it may be sent again; 0 if it may be answered now."""
        now = self._clock()
        most = self._per_second * _BURST
        left, counted_at = self._left.pop(address, (most, now))
        left = min(most, left + (now - counted_at) * self._per_second)
        missing = max(0.0, 1.0 - left)
        self._left[address] = (left if missing else left - cost, now)
        if len(self._left) > _ADDRESSES:
            self._left.popitem(last=False)
        return missing / self._per_second
