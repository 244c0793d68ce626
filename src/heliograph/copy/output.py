"""The last step of `classify`: batches get the compression that is asked for, and a size that the mirror takes."""

from heliograph.copy.classified import COMPRESSION, Classified, LeftOut, OutgoingBatch, Rules
from heliograph.copy.open_batch import OpenBatch
from heliograph.model.compression import COMPRESSION_TYPES, Compression
from heliograph.wire.batches import BadBatch, Batch
from heliograph.wire.recode import LZ4, NONE, ZSTD, DecodedRecord, codec_of, records_of
from heliograph.wire.recompress import compressed


class RecordTooLarge(Exception):
    """A record is too large for any batch that the mirror takes."""

    def __init__(self, offset: int, text: str) -> None:
        self.offset = offset
        super().__init__(text)


def compression_of(rules: Rules) -> Compression | None:
    """The compression that is asked for, or one that the target knows."""
    is_unknown = rules.compression is not None and rules.compression.codec == ZSTD and not rules.zstd
    return Compression(COMPRESSION_TYPES[LZ4]) if is_unknown else rules.compression


class Output:
    """Adds batches to what was classified."""

    def __init__(self, out: Classified, rules: Rules) -> None:
        self._out = out
        self._rules = rules
        self._compression = compression_of(rules)
        self._level = None if self._compression is None else self._compression.level

    def codec_for(self, batch: Batch) -> int:
        """The compression of this batch's records when they are re-encoded."""
        if self._compression is not None:
            return self._compression.codec
        codec = codec_of(batch)
        return LZ4 if codec == ZSTD and not self._rules.zstd else codec

    def new_batch(self, codec: int, epoch: int, why: str) -> OpenBatch:
        """A batch to be filled with records."""
        return OpenBatch(codec, self._level, self._rules.max_batch_bytes, epoch, why)

    def close(self, current: OpenBatch, next_source: int) -> None:
        """Add a batch that was filled; everything before `next_source` is then copied or left out."""
        self._out.next_source = max(self._out.next_source, next_source)
        if current.builder.count:
            batch = current.builder.build(current.runs[0][0], current.epoch)
            runs = tuple((first, count) for first, count in current.runs)
            self.add(OutgoingBatch(batch, runs, next_source, current.epoch, current.why))

    def add(self, outgoing: OutgoingBatch) -> None:
        before, outgoing.batch = outgoing.batch, self.compressed(outgoing.batch)
        if outgoing.batch is not before:
            outgoing.reencode_reason = outgoing.reencode_reason or COMPRESSION
        limit = self._rules.max_batch_bytes
        if outgoing.size > self._largest(outgoing) and self._add_halves(outgoing):
            return
        if outgoing.count == 1 and limit and outgoing.size > limit:
            (record,) = records_of(outgoing.batch)
            self._too_large(record._replace(offset=outgoing.source_offset), outgoing.size)
        else:
            self._out.outgoing.append(outgoing)
        self._out.next_source = max(self._out.next_source, outgoing.next_source)

    def compressed(self, batch: Batch) -> Batch:
        """With the compression that is asked for. A batch that could not be decompressed stays as it is."""
        if self._compression is None or codec_of(batch) != NONE or self._compression.codec == NONE:
            return batch
        return compressed(batch, self._compression)

    def _largest(self, outgoing: OutgoingBatch) -> int:
        """The size above which a batch is split."""
        sizes = [self._rules.max_batch_bytes or outgoing.size]
        if self._compression is not None and outgoing.is_reencoded:
            sizes.append(self._rules.split_over)
        return min(sizes)

    def _add_halves(self, outgoing: OutgoingBatch) -> bool:
        """Returns False if the batch cannot be split."""
        if outgoing.count == 1:
            return False
        try:
            records = list(records_of(outgoing.batch))
        except BadBatch:  # a header key that is not UTF-8
            return False
        offsets = [first + number for first, count in outgoing.runs for number in range(count)]
        originals = [record._replace(offset=offset) for record, offset in zip(records, offsets, strict=True)]
        half = len(originals) // 2
        parts = (originals[:half], originals[half].offset), (originals[half:], outgoing.next_source)
        for part, until in parts:
            # Without a limit: a record that does not fit would be left out.
            smaller = OpenBatch(codec_of(outgoing.batch), self._level, 0, outgoing.epoch, outgoing.reencode_reason)
            for record in part:
                smaller.add(record)
            self.close(smaller, until)
        return True

    def _too_large(self, record: DecodedRecord, size: int) -> None:
        text = f"the record needs a batch of {size} bytes; the mirror takes {self._rules.max_batch_bytes} at most"
        if not self._rules.parks:
            raise RecordTooLarge(record.offset, text)
        self._out.left_out.append(LeftOut(record, text))
