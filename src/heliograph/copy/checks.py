"""Which batches can be sent on as they are. Whatever cannot is refused with a reason, never skipped."""

from heliograph.wire.batches import Batch


def objection(batch: Batch, expected: int) -> tuple[str, str] | None:
    """Why this batch, found where source offset `expected` should be, must not be copied as it is; None if it may.

    Answers with a short word and a sentence.
    """
    if batch.magic != 2:
        return "old-format", f"the batch is in message format {batch.magic}; only format 2 can be copied as it is"
    if batch.base_offset > expected:
        return "hole", f"the source has no records from {expected} to {batch.base_offset - 1}"
    if batch.base_offset < expected:
        return "inside-batch", f"the batch starts at {batch.base_offset}, before the position"
    if batch.control:
        return "transaction", "a transaction marker stands here"
    if batch.transactional:
        return "transaction", "the batch belongs to a transaction"
    if not batch.dense:
        gone = batch.last_offset_delta + 1 - batch.count
        return "hole", f"compaction has removed {gone} records from the batch"
    if batch.log_append_time:
        return "log-append-time", "the source stamps records on arrival (message.timestamp.type=LogAppendTime)"
    return None
