"""What one mirror partition refuses, as far as is known from the responses of the target."""

from dataclasses import dataclass, field, replace

from heliograph.copy.classified import Rules


@dataclass(slots=True)
class TargetLimits:
    max_batch_bytes: int = 0  # 0: not known to matter
    why_not_raised: str = ""  # the mirror's own limit
    refused_batch_bytes: int = 0  # the size of a batch that the mirror refused
    has_refused_join: bool = False  # it refused one that was joined or re-encoded
    join_up_to: int = 0  # batches are joined up to this size only; 0: not known to matter
    refused_records: dict[int, str] = field(default_factory=dict)  # source offsets that the target refuses, and why
    send_singly_until: int = 0  # source offset up to which records are sent one by one, to find those it refuses

    def rules(self, rules: Rules, preserve_offsets: bool) -> Rules:
        if not (self.max_batch_bytes or self.join_up_to or self.send_singly_until or preserve_offsets):
            return rules
        return replace(
            rules,
            join_up_to=min(rules.join_up_to, self.join_up_to or rules.join_up_to),
            split_over=min(rules.split_over, self.join_up_to) if self.join_up_to > 1 else rules.split_over,
            max_batch_bytes=self.max_batch_bytes,
            send_singly_until=self.send_singly_until,
            preserve_offsets=preserve_offsets,
        )

    def refuse_batch(self, size: int, is_reencoded: bool) -> None:
        """The mirror refuses a batch of this size. If it was joined, smaller ones may do."""
        if is_reencoded and not self.join_up_to:
            self.has_refused_join = True
        else:
            self.refused_batch_bytes = max(self.refused_batch_bytes, size)

    @property
    def is_settled(self) -> bool:
        """Whether no refusal waits for a look at the mirror's limits."""
        return not self.refused_batch_bytes and not self.has_refused_join

    def settle_join_size(self, join_up_to: int) -> None:
        self.join_up_to, self.has_refused_join = join_up_to, False

    def settle_batch_size(self, max_batch_bytes: int, why_not_raised: str = "") -> None:
        self.max_batch_bytes = max_batch_bytes
        self.why_not_raised = why_not_raised
        self.refused_batch_bytes = 0

    def refuse_record(self, source_offset: int, why: str) -> None:
        self.refused_records[source_offset] = why

    def forget_record(self, source_offset: int) -> None:
        """The record is parked."""
        self.refused_records.pop(source_offset, None)

    def send_singly_before(self, source_offset: int) -> None:
        self.send_singly_until = source_offset
