"""What a plain log line is about, by its arguments. Goes when all lines about partitions are typed events."""

import logging
from typing import Any

from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal


def fields_of_arguments(record: logging.LogRecord) -> dict[str, Any]:
    """Topic, partition, offsets and kind, as far as they are known."""
    fields: dict[str, Any] = {}
    for argument in record.args if isinstance(record.args, tuple) else ():
        if isinstance(argument, MirrorPartition):
            fields |= {"topic": argument.topic, "partition": argument.partition}
        elif isinstance(argument, Refusal | Notice):
            fields |= {
                "topic": argument.partition.topic,
                "partition": argument.partition.partition,
                "source_offset": argument.source_offset,
                "mirror_offset": argument.target_offset,
                "kind": argument.reason if isinstance(argument, Refusal) else argument.kind,
            }
    return fields
