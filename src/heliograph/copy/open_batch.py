"""A batch that is being built of the records of several others."""

from heliograph.wire.recode import Builder, DecodedRecord


class OpenBatch:
    def __init__(self, codec: int, level: int | None, max_batch_bytes: int, epoch: int, why: str) -> None:
        self.codec = codec
        self.why = why
        self.builder = Builder(codec, max_batch_bytes, level)
        self.runs: list[list[int]] = []
        self.next_source = 0
        self.epoch = epoch

    @property
    def size(self) -> int:
        return self.builder.size

    def reaches(self, offset: int) -> bool:
        """Whether a record with this offset would follow without a gap."""
        return not self.runs or sum(self.runs[-1]) == offset

    def add(self, record: DecodedRecord) -> bool:
        if not self.builder.add(record):
            return False
        if self.runs and self.runs[-1][0] + self.runs[-1][1] == record.offset:
            self.runs[-1][1] += 1
        else:
            self.runs.append([record.offset, 1])
        return True
