"""The login of one connection. A broker may end a session after some time (KIP-368), so it is repeated before that.

A broker takes no other request while a login is under way: the connection's requests wait for it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from heliograph.model.security import Sasl
from heliograph.wire.errors import WireError
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.security.sasl import Send, authenticate, start_mechanism

# When to log in again, as fractions of the time after which the broker would close the connection.
_REPEAT_AT, _RETRY_AFTER, _LAST_RETRY_AT = 0.85, 0.04, 0.97


class Login:
    def __init__(self, sasl: Sasl, host: str, send: Send, fail: Callable[[str], None]) -> None:
        """`send` sends a request at once; `fail` ends the connection."""
        self._sasl = sasl
        self._host = host
        self._send = send
        self._fail = fail
        self._mechanism: Any = None
        self._waiting: list[Callable[[], None]] = []
        self._is_under_way = False
        self._is_cancelled = False
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Gets tokens or tickets, which may take longer than a broker waits."""
        self._mechanism = await start_mechanism(self._sasl, self._host)

    async def log_in(self) -> None:
        """After `prepare`. Raises SecurityFailure."""
        self._is_under_way = True
        try:
            lifetime = await authenticate(self._send, self._sasl, self._mechanism)
        finally:
            self._mechanism = None
            self._is_under_way = False
        if lifetime > 0 and not self._is_cancelled:
            self._repeat_after(lifetime * _REPEAT_AT, lifetime * _LAST_RETRY_AT, lifetime * _RETRY_AFTER)
        self._send_waiting()

    def delays(self, send: Callable[[], None]) -> bool:
        """Whether a request has to wait; then `send` is called when the login is done."""
        if self._is_under_way:
            self._waiting.append(send)
        return self._is_under_way

    def cancel(self) -> None:
        """The connection is closed: requests that wait, and later ones, fail when they are sent."""
        self._is_cancelled, self._is_under_way = True, False
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._send_waiting()

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for send in waiting:
            send()

    def _repeat_after(self, seconds: float, last: float, retry: float) -> None:
        def start() -> None:
            self._task = asyncio.create_task(self._repeat(last - seconds, retry))

        self._timer = asyncio.get_running_loop().call_later(seconds, start)

    async def _repeat(self, left: float, retry: float) -> None:
        try:
            await self.prepare()
        except SecurityFailure as error:
            # A token server that is down for a moment: the session is still valid.
            if left > retry:
                self._repeat_after(retry, left, retry)
            else:
                self._fail(str(error))
            return
        except BaseException:
            self._fail("the repeated login failed")
            raise
        try:
            await self.log_in()
        except WireError as error:
            self._fail(f"the repeated login failed: {error}")
        except BaseException:
            self._fail("the repeated login failed")
            raise
