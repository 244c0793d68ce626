"""What a logged line is about: read from what was logged, so that who logs need not say it twice."""

import logging
from typing import Any

from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal


def flow_of(text: str) -> str:
    """Every line about a flow begins with it. Empty for what is about none."""
    flow, colon, _rest = text.partition(": ")
    return flow if colon and "->" in flow and " " not in flow else ""


def about(record: logging.LogRecord) -> dict[str, Any]:
    """Flow, topic, partition, offsets and kind, as far as they are known. A topic may be given as `extra`."""
    found: dict[str, Any] = {}
    if flow := flow_of(record.getMessage()):
        found["flow"] = flow
    if (topic := getattr(record, "topic", None)) is not None:
        found["topic"] = topic
    for one in record.args if isinstance(record.args, tuple) else ():
        if isinstance(one, MirrorPartition):
            found |= {"topic": one.topic, "partition": one.partition}
        elif isinstance(one, Refusal | Notice):
            found |= {
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "source_offset": one.source_offset,
                "mirror_offset": one.target_offset,
                "kind": one.reason if isinstance(one, Refusal) else one.kind,
            }
    return found
