"""Which batches of a Fetch response belong to aborted transactions, by the broker's list."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from heliograph.wire.batches import Batch
from heliograph.wire.recode import is_abort

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class AbortedArrays(NamedTuple):
    """What compiled code reads and changes; see `kernels.joining.join`."""

    transactions: "NDArray[np.int64]"
    producers: "NDArray[np.int64]"
    counts: "NDArray[np.int64]"


class AbortedTransactions:
    """From its first offset to its marker, all that a producer on the list wrote was aborted. The list belongs to one
    response, whose batches are given in order."""

    __slots__ = ("_array", "_begun", "_producers", "_transactions")

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        """(producer id, first offset) of each, in any order."""
        self._transactions = sorted(transactions, key=lambda transaction: transaction[1])
        self._begun = 0  # how many of them
        self._producers: set[int] = set()  # whose transaction has begun and not ended
        self._array: NDArray[np.int64] | None = None

    def hides(self, batch: Batch) -> bool:
        """Whether a transactional batch is aborted, or a marker."""
        transactions = self._transactions
        while self._begun < len(transactions) and transactions[self._begun][1] < batch.next_offset:
            self._producers.add(transactions[self._begun][0])
            self._begun += 1
        if batch.control:
            if batch.producer_id in self._producers and is_abort(batch):
                self._producers.discard(batch.producer_id)
            return True
        return batch.producer_id in self._producers

    def arrays(self) -> AbortedArrays:
        import numpy as np

        if self._array is None:
            self._array = np.array(self._transactions, np.int64).reshape(-1)
        producers = np.empty(len(self._producers) + len(self._transactions), np.int64)
        producers[: len(self._producers)] = list(self._producers)
        return AbortedArrays(self._array, producers, np.array([self._begun, len(self._producers)], np.int64))

    def advance(self, arrays: AbortedArrays) -> None:
        """Continue after the batches that compiled code has joined."""
        self._begun, count = arrays.counts.tolist()
        self._producers = set(arrays.producers[:count].tolist())
