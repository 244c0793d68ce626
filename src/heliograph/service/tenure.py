"""How long this process may act as a member of its group, by its own clock."""

from heliograph.copy.clock import now
from heliograph.wire.errors import Fenced


class Tenure:
    """Begins with a request that the coordinator has answered and is over when no further one was answered for the
    session timeout, counted from when it was sent: so before the coordinator removes the member. What is over does not
    begin again: a process that was frozen finds it over before it can send anything.

    `epoch` is the group's generation; 0 before the first one.
    """

    def __init__(self, group: str, session_timeout: float) -> None:
        self._group = group
        self._session_timeout = session_timeout
        self._until = now() + session_timeout
        self._is_over = False
        self.epoch = 0

    def confirm(self, asked_at: float) -> None:
        """The coordinator has answered a request that was sent then."""
        if self.is_valid:
            self._until = max(self._until, asked_at + self._session_timeout)

    def end(self) -> None:
        self._is_over = True

    @property
    def left(self) -> float:
        """Seconds; not above 0 if it is over."""
        return 0.0 if self._is_over else self._until - now()

    @property
    def is_valid(self) -> bool:
        self._is_over = self._is_over or now() >= self._until
        return not self._is_over

    def check(self) -> None:
        """Raises Fenced if it is over."""
        if not self.is_valid:
            raise Fenced(f"this process is no longer a member of group {self._group}")
