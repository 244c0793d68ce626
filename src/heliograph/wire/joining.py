"""Joins neighbouring batches into one: small ones, and those that cannot be sent as they are.

A broker and Heliograph spend more on each batch than compiled code spends on copying some ten kilobytes, so joining
saves CPU on both sides. Compressed batches are decompressed, joined and compressed again, where that is cheaper than
appending them. Keys, values, headers, timestamps and order stay.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from heliograph.model.compression import COMPRESSION_TYPES, Compression
from heliograph.wire.aborted import AbortedTransactions
from heliograph.wire.batches import Batch, joined_batch, one_batch
from heliograph.wire.kernels.loading import compiled_join
from heliograph.wire.recode import GZIP, LZ4, NONE, SNAPPY, ZSTD, codec_of, join_thin
from heliograph.wire.recompress import compressed, decompressed, good_batch_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Batches up to these sizes cost less to join than to append, for a broker and Heliograph together. `make bench-joining`
# measures it. The sizes are those of the compressed batches.
SMALL = 256 * 1024
_SMALL_COMPRESSED = {GZIP: 2 * 1024, SNAPPY: 16 * 1024, LZ4: 16 * 1024, ZSTD: 8 * 1024}
# Without compiled code.
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
    level: int | None = None  # of what is compressed again; None: the default of Kafka's own producers


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
        if self._compiled is None:
            return self._join_thin(batch, at, done)
        is_plain = _is_plain(batch, done)
        if codec_of(batch) != NONE:
            return self._join_compressed(self._compiled, batch, at, done, aborted, is_plain)
        is_last = at + batch.size >= len(self._data)
        if is_plain and (is_last or batch.size > SMALL):
            return None
        return self._join_compiled(self._compiled, batch, at, done, aborted, is_plain, SMALL)

    def _join_compressed(
        self,
        join: Callable[..., Any],
        first: Batch,
        at: int,
        done: int,
        aborted: AbortedTransactions,
        is_plain: bool,
    ) -> Joined | None:
        if not first.count or (first.transactional and aborted.hides(first)):
            return None
        plain, ends, count = self._decompressed_run(first, at, done)
        if count < (2 if is_plain else 1):
            return None
        data = memoryview(plain)
        limit = self._rules.limit
        run = Joiner(data, self._rules)
        joined = run._join_compiled(join, one_batch(data[: next(iter(ends))]), 0, done, aborted, is_plain, limit)
        if joined is None:
            return None
        compression = Compression(COMPRESSION_TYPES[codec_of(first)], self._rules.level)
        return joined._replace(batch=compressed(joined.batch, compression), end=ends[joined.end])

    def _decompressed_run(self, first: Batch, at: int, done: int) -> tuple[bytearray, dict[int, int], int]:
        """This batch and its small neighbours of the same compression type, decompressed; where each of them ends, from
        index in the result to index in the fetched data; and how many they are, without markers.

        What compiled code would not join is not decompressed, as that would be done again for the next batch."""
        codec, rules = codec_of(first), self._rules
        limit = min(rules.limit, rules.max_batch_bytes or rules.limit)
        plain, ends, count = bytearray(), dict[int, int](), 0
        batch: Batch | None = first
        expected = first.base_offset
        while batch is not None and batch.magic == 2 and len(plain) < limit:
            # A transaction may be aborted, which only compiled code finds out.
            is_apart = batch.base_offset != expected or not batch.dense or (batch.transactional and count > 0)
            if rules.contiguous and (is_apart or batch.control):
                break
            is_small = batch.size <= _SMALL_COMPRESSED.get(codec, 0) or not _is_plain(batch, done)
            if batch.control:
                part: bytearray | memoryview | None = batch.data  # a transaction's marker separates nothing
            else:
                part = decompressed(batch) if is_small and codec_of(batch) == codec else None
            if part is None:
                break
            plain += part
            at += batch.size
            ends[len(plain)] = at
            count += not batch.control
            expected = batch.next_offset
            batch = good_batch_at(self._data, at)
        return plain, ends, count

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
        small: int,
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
            array, at, done, small, limit, rules.contiguous, *arrays, out, runs
        )
        why = epoch_and_why & 3
        if count == 0 or (batches == 1 and why == PLAIN):
            return None
        aborted.advance(arrays)
        made = out[:size] if 2 * size > len(out) else out[:size].copy()  # frees the rest of `out`
        new = joined_batch(made.data, int(runs[0]), epoch_and_why >> 2, first_time, max_time, count)
        return Joined(new, Runs(runs[: 2 * pairs].reshape(-1, 2).copy()), end, next_source, why)


def _is_plain(batch: Batch, done: int) -> bool:
    """Whether it can be sent as it is."""
    return batch.dense and not batch.log_append_time and batch.base_offset >= done
