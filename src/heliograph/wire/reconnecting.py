"""What a client remembers of attempts to connect to one address, so that it does not try again too soon."""

import asyncio
import time

from heliograph.model.backoff import Backoff
from heliograph.wire.errors import Unreachable
from heliograph.wire.security.failures import SecurityFailure

# Logins that fail may lock an account: it takes an operator to change that.
_LOGIN_BACKOFF = Backoff(1.0, 16.0)


class ConnectAttempts:
    """The failed attempts in a row, and until when there is no further one. Failed logins have a longer backoff."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self.failures = 0
        self._failed_logins = 0
        self._not_before = 0.0
        self._error: tuple[type[Unreachable], str] = (Unreachable, "")

    @property
    def pause(self) -> float:
        """Seconds until the next attempt; 0 if there may be one now."""
        return max(0.0, self._not_before - time.monotonic())

    def check(self) -> None:
        """Raises the last error again if it is too soon for another attempt."""
        if self.pause:
            kind, text = self._error
            raise kind(text)

    async def wait(self) -> None:
        """Waits until the next attempt. After a failed login it raises that error instead."""
        if self._failed_logins:
            self.check()
        await asyncio.sleep(self.pause)

    def failed(self, error: Unreachable) -> None:
        self._error = (type(error), str(error))
        self.failures += 1
        seconds = self._backoff.jittered(self.failures)
        if isinstance(error, SecurityFailure):
            self._failed_logins += 1
            seconds = max(seconds, _LOGIN_BACKOFF.after(self._failed_logins))
        self._not_before = time.monotonic() + seconds

    def succeeded(self) -> None:
        self.failures = self._failed_logins = 0
        self._not_before = 0.0
