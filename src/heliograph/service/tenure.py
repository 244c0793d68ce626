"""How long this process may act as a member of its group, by its own clock."""

from heliograph.copy.clock import now
from heliograph.wire.errors import Fenced


class Tenure:
    """Valid while the coordinator has answered a request within the session timeout, counted from when it was sent: so
    it becomes invalid before the coordinator removes the member. A process that was frozen finds it invalid before it
    can send anything. It becomes valid again only by an answer from which the group's generation is known to be the
    same: then nobody else has been assigned what this member drives.

    `epoch` is the group's generation; 0 before the first one.
    """

    def __init__(self, group: str, session_timeout: float) -> None:
        self._group = group
        self._session_timeout = session_timeout
        self._until = now() + session_timeout
        self._is_over = False
        self.epoch = 0

    def confirm(self, asked_at: float) -> None:
        """The coordinator has answered a request that was sent then: this process is a member, in the generation that
        it knows."""
        self._until = max(self._until, asked_at + self._session_timeout)

    def end(self) -> None:
        """For good."""
        self._is_over = True

    @property
    def left(self) -> float:
        """Seconds; not above 0 if it is invalid."""
        return 0.0 if self._is_over else self._until - now()

    @property
    def is_valid(self) -> bool:
        return self.left > 0

    def check(self) -> None:
        """Raises Fenced if it is invalid."""
        if not self.is_valid:
            raise Fenced(f"this process may be no member of group {self._group} any more")
