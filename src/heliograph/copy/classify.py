"""What becomes of fetched batches: sent as they are, re-encoded, or left out. Pure.

| a batch that ...                                             | is                                                    |
| ------------------------------------------------------------ | ----------------------------------------------------- |
| is whole, in format 2 and without LogAppendTime              | sent as it is                                         |
| has holes (compaction) or begins before the position         | re-encoded, from the position on, without the holes   |
| has LogAppendTime, or is of format 0 or 1                    | re-encoded, with the times that consumers see         |
| is larger than the mirror takes                              | re-encoded, as several batches                        |
| is compressed with zstd for a target that does not know it   | re-encoded, with lz4                                  |
| is small, and has neighbours                                 | joined with them                                      |
| has another compression than `compression.type` asks for     | decompressed, joined with its neighbours, compressed  |
| is a transaction's marker, empty, or from an aborted one     | left out; with read_uncommitted, only the first two   |

Where a mirror has the source's offsets (`Rules.preserve_offsets`), no batch spans a gap, and the batches of aborted
transactions are passed on, to be aborted again on the target.

Neighbours that are re-encoded go into one batch, up to `batch.size`. Only what one fetch response brought is joined:
nothing waits for more.
"""

from collections.abc import Iterable, Mapping

from heliograph.copy.classified import (
    COMPRESSION,
    HOLES,
    NO_ZSTD,
    OLD_FORMAT,
    OVERLAP,
    REFUSED,
    STAMPED,
    THIN,
    TOO_LARGE,
    Classified,
    LeftOut,
    OutgoingBatch,
    Rules,
)
from heliograph.copy.open_batch import OpenBatch
from heliograph.copy.output import Output, RecordTooLarge, compression_of
from heliograph.wire.aborted import AbortedTransactions
from heliograph.wire.batches import BadBatch, Batch, batch_at
from heliograph.wire.joining import THIN as _THIN
from heliograph.wire.joining import Joiner, JoinRules
from heliograph.wire.recode import ZSTD, codec_of, records_of
from heliograph.wire.recompress import decompressed_parts

_JOIN_REASONS = (THIN, STAMPED, HOLES, OVERLAP)  # by number, see wire.kernels.joining


def classify(
    data: bytes | memoryview,
    position: int,
    epoch: int,
    rules: Rules,
    aborted: Iterable[tuple[int, int]] = (),
    refused_records: Mapping[int, str] | None = None,
) -> Classified:
    """Classify the batches of one fetch response. `refused_records` are source offsets that the target has refused."""
    work = _Work(Classified(next_source=position, epoch=epoch), rules, aborted, refused_records or {})
    problem = None
    try:
        try:
            work.take_all(memoryview(data))
        except BadBatch as error:
            problem = "damaged", f"damaged data from the source: {error}"
        work.flush()  # what came before is good
        if problem is not None:
            work.out.problem, work.out.next_source = problem, work.done
    except RecordTooLarge as error:
        work.out.problem = "too-large", str(error)
        work.out.next_source = error.offset
    return work.out


class _Work:
    """One fetch response being classified."""

    def __init__(
        self, out: Classified, rules: Rules, aborted: Iterable[tuple[int, int]], refused_records: Mapping[int, str]
    ) -> None:
        self.out = out
        self._rules = rules
        self._aborted = AbortedTransactions(aborted if rules.committed_only else ())
        self._refused_records = refused_records
        # Where records may be refused or must be sent singly, or sizes matter, each record is looked at.
        self._adds_whole_batches = not (refused_records or rules.send_singly_until or rules.max_batch_bytes)
        self._may_join = bool(rules.join_up_to) and not (refused_records or rules.send_singly_until)
        self._output = Output(out, rules)
        self._compression = compression_of(rules)
        self._is_decompressed = False  # the batches that are taken now
        self._open: OpenBatch | None = None
        self.done = out.next_source

    def take_all(self, data: memoryview) -> None:
        if self._compression is None:
            self._take_part(data)
            return
        for part in decompressed_parts(data, self._compression.codec):
            self._is_decompressed = part.obj is not data.obj
            self._take_part(part)
            self.flush()

    def _take_part(self, data: memoryview) -> None:
        rules = self._rules
        level = None if self._compression is None else self._compression.level
        limits = rules.join_up_to, rules.max_batch_bytes
        joiner = Joiner(data, JoinRules(*limits, rules.preserve_offsets, rules.compiled, level))
        at = 0
        while (batch := batch_at(data, at)) is not None:
            joined = self._join(joiner, batch, at) if self._may_join else None
            if joined is not None:
                at = joined
            else:
                self._take(batch)
                at += batch.size

    def _join(self, joiner: Joiner, batch: Batch, at: int) -> int | None:
        """Join this batch with those after it. Returns where the next one begins."""
        if batch.next_offset <= self.done or (not self._rules.zstd and codec_of(batch) == ZSTD):
            return None
        joined = joiner.join(batch, at, self.done, self._aborted)
        if joined is None:
            return None
        self.flush()
        made = joined.batch
        self.done, self.out.epoch = joined.next_source, made.leader_epoch
        why = _JOIN_REASONS[joined.why]
        self._output.add(OutgoingBatch(made, joined.runs, self.done, made.leader_epoch, why))
        return joined.end

    def _take(self, batch: Batch) -> None:
        if batch.next_offset <= self.done:
            return
        if batch.magic != 2:
            self._recode(batch, OLD_FORMAT)
        # The header is rewritten, checksum included: damage must be found before that hides it.
        elif not batch.has_valid_checksum():
            raise BadBatch("the checksum does not match")
        elif self._invisible(batch):
            self._skip(batch)
        elif why := self._reencode_reason(batch):
            self._recode(batch, why)
        elif not (self._better_joined(batch) and self._try_recode(batch)):
            self._send(batch)
        self.done = batch.next_offset
        self.out.epoch = batch.leader_epoch

    def _invisible(self, batch: Batch) -> bool:
        """Markers, empty batches and, with read_committed, those of aborted transactions."""
        if batch.count == 0:
            return True
        return self._aborted.hides(batch) if batch.transactional else batch.control

    def _try_recode(self, batch: Batch) -> bool:
        """Re-encode it if it can be decoded: what can be sent as it is need not be."""
        try:
            self._recode(batch, THIN)
        except BadBatch:
            return False
        return True

    def _better_joined(self, batch: Batch) -> bool:
        """Small batches of a transaction are seldom alone; the others have been joined by `_join`."""
        return batch.size <= _THIN and bool(self._rules.join_up_to) and (self._open is not None or batch.transactional)

    def _reencode_reason(self, batch: Batch) -> str:
        """Why it cannot be sent as it is; empty if it can."""
        rules = self._rules
        if batch.log_append_time:
            return STAMPED
        if not batch.dense:
            return HOLES
        if batch.base_offset < self.done:
            return OVERLAP
        if rules.max_batch_bytes and batch.size > rules.max_batch_bytes:
            return TOO_LARGE
        if not rules.zstd and codec_of(batch) == ZSTD:
            return NO_ZSTD
        refused = bool(self._refused_records) and any(
            batch.base_offset <= offset < batch.next_offset for offset in self._refused_records
        )
        return REFUSED if refused or batch.base_offset < rules.send_singly_until else ""

    def _send(self, batch: Batch) -> None:
        self.flush()
        runs, why = ((batch.base_offset, batch.count),), COMPRESSION if self._is_decompressed else ""
        self._output.add(OutgoingBatch(batch, runs, batch.next_offset, batch.leader_epoch, why))

    def _recode(self, batch: Batch, why: str) -> None:
        codec = self._output.codec_for(batch)
        if self._rules.preserve_offsets and self._open is not None and not self._open.reaches(batch.base_offset):
            self.flush()
        current = self._open
        if current is not None and (current.codec != codec or current.size + batch.size > self._rules.join_up_to):
            self.flush()
            current = None
        if current is None:
            current = self._open = self._output.new_batch(codec, batch.leader_epoch, why)
        whole = batch.dense or not self._rules.preserve_offsets
        if (
            batch.magic == 2
            and self._adds_whole_batches
            and whole
            and current.builder.add_batch(batch, self.done, current.runs)
        ):
            current.next_source, current.epoch = batch.next_offset, batch.leader_epoch
            return
        for record in list(records_of(batch)):  # all or, if it is damaged, none
            if record.offset < self.done:
                continue
            if record.offset in self._refused_records:
                self.out.left_out.append(LeftOut(record, self._refused_records[record.offset]))
                continue
            apart = self._rules.preserve_offsets and not current.reaches(record.offset)
            if (
                apart
                or (current.runs and current.runs[0][0] < self._rules.send_singly_until)
                or not current.add(record)
            ):
                self._output.close(current, record.offset)
                current = self._open = self._output.new_batch(codec, batch.leader_epoch, why)
                current.add(record)
            current.epoch = batch.leader_epoch
        current.next_source, current.epoch = batch.next_offset, batch.leader_epoch

    def _skip(self, batch: Batch) -> None:
        """Leave a batch out: what came before it now reaches past it."""
        if self._rules.preserve_offsets and batch.count and not batch.control:
            self.out.aborted.append(self._output.compressed(batch))
        if self._open is not None and self._open.builder.count:
            self._open.next_source, self._open.epoch = batch.next_offset, batch.leader_epoch
        elif self.out.outgoing:
            self.out.outgoing[-1].next_source, self.out.outgoing[-1].epoch = batch.next_offset, batch.leader_epoch
        self.out.next_source = batch.next_offset

    def flush(self) -> None:
        """Close the batch that is being joined."""
        if self._open is not None:
            current, self._open = self._open, None
            self._output.close(current, current.next_source)
