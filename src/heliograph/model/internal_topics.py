"""The names of our internal topics on the target. All end in `.internal`, so that no mirroring tool copies them."""

# Partitions of the signals topic.
COMMANDS = 0
PROGRESS = 1
STATUS = 2


def ledger_topic(source_alias: str) -> str:
    return f"heliograph-ledger.{source_alias}.internal"


def intervals_topic(source_alias: str) -> str:
    """The topic of intervals of version 0.1.0. It is read once, and not written any more."""
    return f"heliograph-intervals.{source_alias}.internal"


def dead_letters_topic(source_alias: str) -> str:
    return f"heliograph-dead-letters.{source_alias}.internal"


def signals_topic(source_alias: str) -> str:
    return f"heliograph-signals.{source_alias}.internal"
