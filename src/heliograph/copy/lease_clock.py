"""The time of a lease, by its own clock. Nothing is sent after its deadline: another lease may have copied on since."""

from heliograph.copy.clock import now
from heliograph.copy.signals import Grant

_ASK_BELOW = 0.75  # of its time: a lease that has less left asks for more with every report


class LeaseClock:
    def __init__(self, seconds: float, attempt: int = 0) -> None:
        self._seconds = seconds
        self._attempt = attempt
        self._deadline = now() + seconds
        self._asked: list[float] = []  # when we asked for more time

    @property
    def left(self) -> float:
        return self._deadline - now()

    @property
    def is_expired(self) -> bool:
        return now() >= self._deadline

    def ask(self) -> int:
        """The number of a request for more time if it is time for one, else 0."""
        moment = now()
        if self._deadline - moment > self._seconds * _ASK_BELOW:
            return 0
        self._asked.append(moment)
        return len(self._asked)

    def extend(self, grant: Grant) -> bool:
        """Add the granted time, counted from when we asked. Returns whether the grant counts.

        One that comes after the deadline is too late: parts of the lease may have ended.
        """
        if self.is_expired or grant.attempt != self._attempt or grant.ask > len(self._asked):
            return False
        self._deadline = max(self._deadline, self._asked[grant.ask - 1] + self._seconds)
        return True
