"""What the parts of a lease report to the copier."""

from collections.abc import Sequence
from typing import Protocol

from heliograph.copy.cursor import Cursor
from heliograph.copy.send_queue import Sent
from heliograph.model.problems import Notice


class Callbacks(Protocol):
    def resumed(self, cursors: Sequence[Cursor]) -> None:
        """These cursors have a position, and may be read."""

    def moved(self, cursor: Cursor) -> None:
        """The cursor is fetched from another broker from now on."""

    def changed(self, cursor: Cursor) -> None:
        """Something that progress reports contain has changed."""

    def queued(self, cursor: Cursor, must_be_recorded: bool) -> None:
        """Fetched batches are queued; some of them may have to wait for the ledger."""

    def recorded(self, cursor: Cursor) -> None:
        """The ledger has what queued batches have waited for."""

    def landed(self, cursor: Cursor, sent: Sent) -> None:
        """The mirror holds a batch at its offset."""

    def settled(self, cursors: Sequence[Cursor]) -> None:
        """Requests of these cursors are not in flight any more."""

    def gaps_filled(self, cursors: Sequence[Cursor]) -> None:
        """The gaps that came next for these cursors are in their mirrors."""

    def fetched(self, size: int) -> None:
        """Bytes of records have arrived from the source."""

    def answered(self, seconds: float) -> None:
        """The target has answered a Produce request after so many seconds."""

    def throttled(self, side: str, seconds: float) -> None:
        """A broker of the source or the target throttles us."""

    def restart(self, cursor: Cursor, why: str, is_suspicious: bool) -> None:
        """The cursor must find its position again. A suspicious cause is permanent if it keeps coming back."""

    def notice(self, notice: Notice) -> None:
        """Something went wrong with a partition, and copying continues."""
