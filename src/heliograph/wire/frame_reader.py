"""Reads the fields of a response one after the other, where it was received."""

import struct
import uuid

from heliograph.wire.connection import read_uvarint

SHORT, INT, LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


class FrameReader:
    """Raises ValueError, IndexError or struct.error where the frame ends too early."""

    def __init__(self, frame: memoryview, flexible: bool) -> None:
        self.frame = frame
        self._flexible = flexible
        self.at = 0

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self.frame, self.at)
        self.at += layout.size
        return values

    def number(self, layout: struct.Struct) -> int:
        return int(self.fields(layout)[0])

    def view(self, size: int) -> memoryview:
        if size > len(self.frame) - self.at:
            raise ValueError(f"{size} bytes announced, only {len(self.frame) - self.at} left")
        self.at += size
        return self.frame[self.at - size : self.at]

    def length(self, layout: struct.Struct) -> int:
        """Of an array, a string or bytes; 0 for null."""
        return max(0, self._varint() - 1 if self._flexible else self.number(layout))

    def text(self) -> str:
        return str(self.view(self.length(SHORT)), "utf-8")

    def topic_id(self) -> uuid.UUID:
        return uuid.UUID(bytes=bytes(self.view(16)))

    def tags(self) -> dict[int, memoryview]:
        if not self._flexible:
            return {}
        return {self._varint(): self.view(self._varint()) for _ in range(self._varint())}

    def _varint(self) -> int:
        value, self.at = read_uvarint(self.frame, self.at)
        return value
