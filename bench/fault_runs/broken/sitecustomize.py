"""Breaks Heliograph on purpose, to show that a run with faults notices it. Python imports this at the start of every
process that has this folder on its path: the driver and the processes of leases."""

import os
from typing import Any

_STALE = 7  # records


def _no_sequence_check() -> None:
    """Batches have no producer id: brokers append whatever comes, as often as it comes."""
    from heliograph.copy.send_queue import SendQueue
    from heliograph.wire.batches import mirror_header

    def header(_queue: Any, batch: Any, _mirror_offset: int) -> bytes:
        return mirror_header(batch, -1, -1)

    setattr(SendQueue, "header", header)  # noqa: B010


def _stale_resume_position() -> None:
    """A copier that resumes continues some records before the mirror's end."""
    from dataclasses import replace

    from heliograph.copy.cursor import Cursor

    start = Cursor.start

    def start_earlier(self: Any, point: Any) -> None:
        position = point.position
        if position.target > 10 * _STALE:
            point = replace(point, position=replace(position, source=position.source - _STALE))
        start(self, point)

    setattr(Cursor, "start", start_earlier)  # noqa: B010


def _unfenced_decision() -> None:
    """Whatever was written to the ledger last counts, whether or not its author had read what others wrote."""
    from heliograph.copy.ledger_state import LedgerState

    def accepts(_state: Any, *_arguments: Any) -> bool:
        return True

    setattr(LedgerState, "accepts", accepts)  # noqa: B010


BROKEN = {
    "no-sequence-check": _no_sequence_check,
    "stale-resume-position": _stale_resume_position,
    "unfenced-decision": _unfenced_decision,
}

if (_chosen := os.environ.get("FAULT_RUN_BROKEN")) is not None:
    BROKEN[_chosen]()
