"""Splits what a connection receives into frames, without copying large ones.

A frame larger than the small receive buffer is received straight into memory of its own.
"""

import struct
from collections.abc import Iterator

SMALL_BUFFER = 64 * 1024
# A longer frame is not Kafka's: an HTTP or TLS port answers with bytes that read as hundreds of megabytes. The first
# answer of a broker is a short one, to ApiVersions.
LARGEST_FRAME = 1 << 30
_LARGEST_FIRST_FRAME = 1 << 20
_LENGTH = struct.Struct(">i")


class NotFrames(Exception):
    """The bytes are not Kafka's protocol. `start` is how they begin."""

    def __init__(self, start: bytes) -> None:
        super().__init__()
        self.start = start


class FrameBuffer:
    def __init__(self) -> None:
        self._small = bytearray(SMALL_BUFFER)
        self._small_fill = 0
        self._frame: memoryview | None = None
        self._frame_fill = 0
        self._largest = _LARGEST_FIRST_FRAME

    def free(self) -> memoryview:
        """Where the next bytes go."""
        if self._frame is not None:
            return self._frame[self._frame_fill :]
        return memoryview(self._small)[self._small_fill :]

    def filled(self, received: int) -> Iterator[memoryview]:
        """The frames that these bytes complete. Raises NotFrames."""
        if self._frame is not None:
            self._frame_fill += received
            if self._frame_fill == len(self._frame):
                frame, self._frame = self._frame, None
                yield frame
            return
        self._small_fill += received
        yield from self._split_small()

    def _split_small(self) -> Iterator[memoryview]:
        at, fill, small = 0, self._small_fill, self._small
        while fill - at >= 4:
            size = _LENGTH.unpack_from(small, at)[0]
            if not 4 <= size <= self._largest:
                raise NotFrames(bytes(small[at : at + 4]))
            self._largest = LARGEST_FRAME
            at += 4
            if fill - at < size:
                self._frame = _uninitialized(size)
                self._frame[: fill - at] = small[at:fill]
                self._frame_fill = fill - at
                self._small_fill = 0
                return
            yield memoryview(small[at : at + size])
            at += size
        small[: fill - at] = small[at:fill]
        self._small_fill = fill - at


def _uninitialized(size: int) -> memoryview:
    """Python itself would write zeros to every byte before it is received."""
    if size < SMALL_BUFFER:
        return memoryview(bytearray(size))
    import numpy as np  # late: only processes that copy have large frames

    return np.empty(size, np.uint8).data
