"""What a flow does with batches and records that it would not do by default, for `heliograph config`."""

from heliograph.model.flow import CONTINUE, Flow


def data_path(flow: Flow) -> list[tuple[str, str]]:
    """Names and values, only of what is set."""
    rows = []
    compression, rack = flow.writing.compression, flow.reading.rack
    if compression is not None:
        rows.append(("compression", f"{compression.type}, for batches of another type"))
    if rack:
        rows.append(("fetched from", f"replicas in rack {rack}, where leaders name one"))
    if flow.policies.refused_record == CONTINUE:
        rows.append(("refused records", "to the dead-letter topic"))
    return rows
