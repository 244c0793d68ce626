"""Values around `classify`: the rules that it goes by, and what becomes of fetched batches."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from heliograph.model.compression import Compression
from heliograph.wire.batches import Batch
from heliograph.wire.recode import DecodedRecord

# Why a batch was re-encoded, in a word each.
HOLES, OVERLAP, STAMPED, OLD_FORMAT = "holes", "overlap", "stamped", "old-format"
TOO_LARGE, REFUSED, NO_ZSTD, THIN, COMPRESSION = "too-large", "refused", "no-zstd", "thin", "compression"
REENCODE_REASONS = (HOLES, OVERLAP, STAMPED, OLD_FORMAT, TOO_LARGE, REFUSED, NO_ZSTD, THIN, COMPRESSION)


SPLIT_OVER = 900_000  # bytes, where `batch.size` is 0 or nothing is joined


@dataclass(frozen=True, slots=True)
class Rules:
    """What the mirror takes. `max_batch_bytes` is its limit for batches, 0 if not known to matter."""

    committed_only: bool = True
    join_up_to: int = 900_000
    compiled: bool = True  # use compiled code, where it is there
    max_batch_bytes: int = 0
    zstd: bool = True
    parks: bool = False  # records that the mirror cannot take are parked instead of stopping the partition
    send_singly_until: int = 0  # records before this source offset go one by one
    preserve_offsets: bool = False  # the mirror has the source's offsets
    compression: Compression | None = None  # None: as in the source
    split_over: int = SPLIT_OVER  # with `compression`, no batch that is re-encoded is larger, unless it has one record


@dataclass(slots=True, eq=False)
class OutgoingBatch:
    """A batch to be appended and where its records come from: `runs` are (first source offset, count)."""

    batch: Batch
    runs: Sequence[tuple[int, int]]
    next_source: int  # everything before it is copied or left out when this batch has landed
    epoch: int  # leader epoch of the last batch before that
    reencode_reason: str = ""  # empty if it is as it was fetched; of several reasons, that of its first batch
    is_copied: bool = False  # its bytes were copied out of the response

    @property
    def is_reencoded(self) -> bool:
        return bool(self.reencode_reason)

    @property
    def has_own_bytes(self) -> bool:
        """Whether it does not keep the response in memory."""
        return self.is_copied or self.is_reencoded

    @property
    def source_offset(self) -> int:
        return self.runs[0][0]

    @property
    def count(self) -> int:
        return self.batch.count

    @property
    def size(self) -> int:
        return self.batch.size


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that the mirror cannot take, and why."""

    record: DecodedRecord
    why: str


@dataclass(slots=True)
class Classified:
    outgoing: list[OutgoingBatch] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    aborted: list[Batch] = field(default_factory=list)
    next_source: int = 0
    epoch: int = -1
    problem: tuple[str, str] | None = None  # at next_source: a keyword and a sentence

    def leave_response(self, size: int) -> int:
        """Copies what is still needed of the response that the batches were received in: if other batches of it were
        joined or re-encoded, which have bytes of their own, or if most of it is of other partitions.

        Returns the bytes in memory apart from batches that have their own: the whole response, or what is copied.
        """
        kept = [outgoing for outgoing in self.outgoing if not outgoing.has_own_bytes]
        aborted = sum(batch.size for batch in self.aborted)
        needed = aborted + sum(outgoing.size for outgoing in kept)
        if len(kept) == len(self.outgoing) and 2 * needed >= size:
            return max(size, needed)  # more than the response if it was decompressed
        for outgoing in self.outgoing:
            if not outgoing.has_own_bytes or outgoing.batch.keeps_others:
                outgoing.batch, outgoing.is_copied = outgoing.batch.with_own_bytes(), True
        self.aborted = [batch.with_own_bytes() for batch in self.aborted]
        return aborted
