"""Joins neighbouring batches into one: small ones, and uncompressed ones that cannot be sent as they are.

A broker and Heliograph spend more on each batch than compiled code spends on copying some ten kilobytes, so joining
saves CPU on both sides. Keys, values, headers, timestamps and order stay.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from heliograph.wire.aborted import AbortedTransactions
from heliograph.wire.batches import Batch, joined_batch
from heliograph.wire.kernels.loading import compiled_join
from heliograph.wire.recode import NONE, codec_of, join_thin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Measured: an append costs a broker and Heliograph together about as much as joining this many bytes in compiled code.
SMALL = 64 * 1024
# Compressed, or without compiled code: decoding and encoding more than this costs more than an append.
THIN = 1024
PLAIN = 0  # it could be sent as it is; kernels.joining has the other numbers
_MAX_RUNS = 4096


class Runs(Sequence[tuple[int, int]]):
    """(first source offset, count) of many runs of records, without an object for each."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: "NDArray[np.int64]") -> None:
        self.numbers = numbers  # a row for each run

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, at: slice) -> "Runs": ...
    def __getitem__(self, at: int | slice) -> "tuple[int, int] | Runs":
        if isinstance(at, slice):
            return Runs(self.numbers[at])
        return self.numbers.item(at, 0), self.numbers.item(at, 1)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return map(tuple, self.numbers.tolist())


def all_runs(parts: Sequence[Sequence[tuple[int, int]]]) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """First source offsets and counts of all runs, one part after the other."""
    import numpy as np

    arrays = [runs.numbers if isinstance(runs, Runs) else np.array(runs, np.int64) for runs in parts]
    joined = np.concatenate(arrays)
    return joined[:, 0], joined[:, 1]


class Joined(NamedTuple):
    """A batch made of several, or of one that cannot be sent as it is."""

    batch: Batch
    runs: Sequence[tuple[int, int]]  # (first source offset, count)
    end: int  # index in the data after the last of them
    next_source: int
    why: int  # its first batch cannot be sent as it is, or PLAIN


@dataclass(frozen=True, slots=True)
class JoinRules:
    limit: int  # size of a joined batch
    max_batch_bytes: int = 0  # what the mirror takes; 0: no known limit
    contiguous: bool = False  # no batch may span a gap between source offsets
    compiled: bool = True


class Joiner:
    """Joins batches of one fetched chunk."""

    def __init__(self, data: memoryview, rules: JoinRules) -> None:
        self._data = data
        self._rules = rules
        self._compiled = compiled_join() if rules.compiled else None
        self._array: Any = None

    def join(self, batch: Batch, at: int, done: int, aborted: AbortedTransactions) -> Joined | None:
        """Join the batches from this one on, which is at index `at`, without aborted records and those before source
        offset `done`. None if it is not joined: the caller then handles it alone."""
        if batch.magic != 2:
            return None
        if self._compiled is None or codec_of(batch) != NONE:
            return self._join_thin(batch, at, done)
        is_plain = batch.dense and not batch.log_append_time and batch.base_offset >= done
        is_last = at + batch.size >= len(self._data)
        if is_plain and (is_last or batch.size > SMALL):
            return None
        return self._join_compiled(self._compiled, batch, at, done, aborted, is_plain)

    def _join_thin(self, batch: Batch, at: int, done: int) -> Joined | None:
        if batch.size > THIN or batch.base_offset < done or self._rules.max_batch_bytes:
            return None
        thin = join_thin(self._data, at, THIN, self._rules.limit)
        if thin is None:
            return None
        made, end = thin
        return Joined(made, ((made.base_offset, made.count),), end, made.base_offset + made.count, PLAIN)

    def _join_compiled(
        self,
        join: Callable[..., Any],
        batch: Batch,
        at: int,
        done: int,
        aborted: AbortedTransactions,
        is_plain: bool,
    ) -> Joined | None:
        import numpy as np

        if self._array is None:
            self._array = np.frombuffer(self._data, np.uint8)
        rules = self._rules
        array, limit = self._array, rules.limit
        if not is_plain and batch.size + batch.size // 4 + 64 > limit:
            # It must be re-encoded, and may grow: times and offsets take more bytes. So it goes alone.
            array, limit = array[: at + batch.size], batch.size + batch.size // 4 + 64
        limit = min(limit, rules.max_batch_bytes or limit)
        left = len(array) - at
        out = np.empty(min(limit, left + left // 8 + 64), np.uint8)
        runs = np.empty(2 * _MAX_RUNS, np.int64)
        arrays = aborted.arrays()
        end, size, batches, count, pairs, first_time, max_time, next_source, epoch_and_why = join(
            array, at, done, SMALL, limit, rules.contiguous, *arrays, out, runs
        )
        why = epoch_and_why & 3
        if count == 0 or (batches == 1 and why == PLAIN):
            return None
        aborted.advance(arrays)
        made = out[:size] if 2 * size > len(out) else out[:size].copy()  # frees the rest of `out`
        new = joined_batch(made.data, int(runs[0]), epoch_and_why >> 2, first_time, max_time, count)
        return Joined(new, Runs(runs[: 2 * pairs].reshape(-1, 2).copy()), end, next_source, why)
