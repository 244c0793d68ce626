"""Problems of a partition: it stopped, or it continues nevertheless."""

from dataclasses import dataclass

from heliograph.model.partitions import MirrorPartition


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a partition is not copied any further."""

    partition: MirrorPartition
    reason: str  # stable: foreign-writer, hole, transaction, ...
    source_offset: int
    target_offset: int
    text: str
    final: bool = True  # False: it is retried, and may recover

    def __str__(self) -> str:
        verb = "stopped" if self.final else "is waiting"
        return (
            f"{self.partition} (mirror {self.partition.mirror}-{self.partition.partition}) {verb} at source offset "
            f"{self.source_offset}, mirror offset {self.target_offset}: {self.text}"
        )


@dataclass(frozen=True, slots=True)
class Notice:
    """A problem of a partition that continues, because a policy says so or it has recovered."""

    partition: MirrorPartition
    kind: str  # stable: data-loss, recreated-topic, ...
    count: int  # of records affected; 0 if not known
    source_offset: int
    target_offset: int
    text: str

    def __str__(self) -> str:
        return (
            f"{self.partition} (mirror {self.partition.mirror}-{self.partition.partition}) at source offset "
            f"{self.source_offset}, mirror offset {self.target_offset}: {self.text}"
        )
