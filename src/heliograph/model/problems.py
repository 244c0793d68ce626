"""What went wrong with a partition: it stopped, or it goes on all the same."""

from dataclasses import dataclass

from heliograph.model.partitions import MirrorPartition


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a partition is not being copied any further, in words for the operator."""

    partition: MirrorPartition
    reason: str  # a short stable word: foreign-writer, hole, transaction, ...
    source_offset: int
    target_offset: int
    text: str
    final: bool = True  # False: it is being tried again all the time, and may well go on by itself

    def __str__(self) -> str:
        verb = "stopped" if self.final else "is waiting"
        return (
            f"{self.partition} (mirror {self.partition.mirror}-{self.partition.partition}) {verb} at source offset "
            f"{self.source_offset}, mirror offset {self.target_offset}: {self.text}"
        )


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that went wrong with a partition, which goes on all the same, because a policy says so or it healed."""

    partition: MirrorPartition
    kind: str  # a short stable word: data-loss, recreated-topic, ...
    count: int  # of records that it is about; 0 where there is no such number
    source_offset: int
    target_offset: int
    text: str

    def __str__(self) -> str:
        return (
            f"{self.partition} (mirror {self.partition.mirror}-{self.partition.partition}) at source offset "
            f"{self.source_offset}, mirror offset {self.target_offset}: {self.text}"
        )
