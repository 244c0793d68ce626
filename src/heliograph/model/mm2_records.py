"""MirrorMaker 2's own records: offset syncs, checkpoints, heartbeats; byte for byte as it writes them.

Strings have a length of two bytes before them, numbers are big-endian. Values of checkpoints and heartbeats begin with
a version, which has always been 0; keys and offset syncs have none. Bytes after known fields are ignored, as in MM2.
"""

import struct
from dataclasses import dataclass

_VERSION = 0
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class BadRecord(ValueError):
    """The bytes are not such a record."""


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The record at offset `upstream` of a source partition is at offset `downstream` of its mirror."""

    topic: str  # as the source calls it
    partition: int
    upstream: int
    downstream: int

    def to_record(self) -> tuple[bytes, bytes]:
        return _text(self.topic) + _INT.pack(self.partition), _TWO_LONGS.pack(self.upstream, self.downstream)

    @classmethod
    def from_record(cls, key: bytes, value: bytes) -> "OffsetSync":
        fields, numbers = _Fields(key), _Fields(value)
        return cls(fields.text(), fields.number(), numbers.long(), numbers.long())


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group that has committed `upstream` on the source resumes at `downstream` of the mirror."""

    group: str
    topic: str  # as the target calls it
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def to_record(self) -> tuple[bytes, bytes]:
        key = _text(self.group) + _text(self.topic) + _INT.pack(self.partition)
        return key, _SHORT.pack(_VERSION) + _TWO_LONGS.pack(self.upstream, self.downstream) + _text(self.metadata)

    @classmethod
    def from_record(cls, key: bytes, value: bytes) -> "Checkpoint":
        fields, rest = _Fields(key), _Fields(value)
        rest.short()
        return cls(fields.text(), fields.text(), fields.number(), rest.long(), rest.long(), rest.text())


@dataclass(frozen=True, slots=True)
class Heartbeat:
    source: str
    target: str
    timestamp: int  # milliseconds

    def to_record(self) -> tuple[bytes, bytes]:
        return _text(self.source) + _text(self.target), _SHORT.pack(_VERSION) + _LONG.pack(self.timestamp)

    @classmethod
    def from_record(cls, key: bytes, value: bytes) -> "Heartbeat":
        fields, rest = _Fields(key), _Fields(value)
        rest.short()
        return cls(fields.text(), fields.text(), rest.long())


def _text(value: str) -> bytes:
    encoded = value.encode()
    if len(encoded) > 0x7FFF:
        raise ValueError(f"{len(encoded)} bytes are too long for a name: {value[:40]}…")
    return _SHORT.pack(len(encoded)) + encoded


class _Fields:
    """Reads fields one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def short(self) -> int:
        return self._number(_SHORT)

    def number(self) -> int:
        return self._number(_INT)

    def long(self) -> int:
        return self._number(_LONG)

    def text(self) -> str:
        size = self.short()
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise BadRecord(f"a string of {size} bytes does not fit into what is left")
        try:
            value = self._data[self._at : end].decode()
        except UnicodeDecodeError as error:
            raise BadRecord(str(error)) from None
        self._at = end
        return value

    def _number(self, form: struct.Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self._at)
        except struct.error as error:
            raise BadRecord(str(error)) from None
        self._at += form.size
        return int(value)
