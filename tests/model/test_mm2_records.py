"""MM2's record formats against vectors taken from MM2."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.mm2_records import BadRecord, Checkpoint, Heartbeat, OffsetSync

_VECTORS = [
    (
        OffsetSync("topic-1", 2, 3, 4),
        "0007746f7069632d3100000002",
        "00000000000000030000000000000004",
    ),
    (
        Checkpoint("group-1", "topic-2", 3, 4, 5, "metadata-6"),
        "000767726f75702d310007746f7069632d3200000003",
        "000000000000000000040000000000000005000a6d657461646174612d36",
    ),
    (
        Heartbeat("source-1", "target-2", 1234567890),
        "0008736f757263652d3100087461726765742d32",
        "000000000000499602d2",
    ),
]


@pytest.mark.parametrize(("record", "key", "value"), _VECTORS)
def test_records_are_mm2s_bytes(record: OffsetSync | Checkpoint | Heartbeat, key: str, value: str) -> None:
    assert record.to_record() == (bytes.fromhex(key), bytes.fromhex(value))
    assert type(record).from_record(bytes.fromhex(key), bytes.fromhex(value) + b"more") == record


_NAME = st.text(max_size=50)
_OFFSET = st.integers(-(2**63), 2**63 - 1)
_PARTITION = st.integers(-(2**31), 2**31 - 1)


@given(st.builds(Checkpoint, _NAME, _NAME, _PARTITION, _OFFSET, _OFFSET, _NAME))
def test_records_are_decoded_as_they_were_encoded(checkpoint: Checkpoint) -> None:
    assert Checkpoint.from_record(*checkpoint.to_record()) == checkpoint


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_other_bytes_raise_bad_record(key: bytes, value: bytes) -> None:
    for kind in (OffsetSync, Checkpoint, Heartbeat):
        with contextlib.suppress(BadRecord):
            kind.from_record(key, value)
