"""Joins the batches of a fetched chunk, as one loop that numba compiles.

Only lengths, times and offsets in front of each record are written again; keys, values and headers are copied as bytes.
Importing this module compiles it, or loads what was compiled before: use `heliograph.wire.kernels.loading`. It is one
module, as numba compiles again only if the file itself has changed.
"""

import platform
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# --- what Python cannot express: unaligned reads, copies, and the processor's own CRC-32C ---------------------------

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_POLYNOMIAL = 0x82F63B78


def _instruction() -> str | None:
    """LLVM's name of the processor's instruction for eight bytes of CRC-32C, if it has one."""
    if numba.config.CPU_NAME or numba.config.CPU_FEATURES:  # code is made for another processor than this one
        return None
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:
        return None
    by_machine = {
        "x86_64": ("sse4.2", "llvm.x86.sse42.crc32.64.64"),
        "aarch64": ("crc", "llvm.aarch64.crc32cx"),
    }
    feature, name = by_machine.get(platform.machine(), ("", ""))
    return name if features.get(feature) else None


INSTRUCTION = _instruction()


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [at])


@intrinsic
def _load_big(_typing: Any, array: Any, at: Any) -> Any:
    """Eight bytes of an array as a big-endian number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _pointer(context, builder, signature.args[0], *arguments)
        value = builder.load(builder.bitcast(at, _I64.as_pointer()), align=1)
        return builder.bswap(value)

    return types.int64(array, at), generate


@intrinsic
def _load_little(_typing: Any, array: Any, at: Any) -> Any:
    """Eight bytes of an array as a little-endian number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(builder.bitcast(at, _I64.as_pointer()), align=1)

    return types.uint64(array, at), generate


@intrinsic
def _copy(_typing: Any, target: Any, at: Any, source: Any, start: Any, count: Any) -> Any:
    """Copies bytes between arrays that do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, at, source, start, count = arguments
        to = _pointer(context, builder, signature.args[0], target, at)
        cgutils.raw_memcpy(builder, to, _pointer(context, builder, signature.args[2], source, start), count, 1)
        return context.get_dummy_value()

    return types.void(target, at, source, start, count), generate


@intrinsic
def _crc_of_eight(_typing: Any, _crc: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        crc, word = arguments
        if INSTRUCTION == "llvm.aarch64.crc32cx":
            kind = ir.FunctionType(_I32, [_I32, _I64])
            function = cgutils.get_or_insert_function(builder.module, kind, INSTRUCTION)
            return builder.zext(builder.call(function, [builder.trunc(crc, _I32), word]), _I64)
        kind = ir.FunctionType(_I64, [_I64, _I64])
        function = cgutils.get_or_insert_function(builder.module, kind, INSTRUCTION)
        return builder.call(function, [crc, word])

    return types.uint64(types.uint64, types.uint64), generate


def _tables() -> Any:
    """For eight bytes at a time: entry [k][b] is the checksum of byte b and k zero bytes after it."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        tables[0, byte] = value
    for byte in range(256):
        for zeros in range(1, 8):
            before = int(tables[zeros - 1, byte])
            tables[zeros, byte] = (before >> 8) ^ int(tables[0, before & 0xFF])
    return tables


_TABLES = _tables()


@numba.njit(inline="always")
def _crc_of_eight_by_table(crc, word):
    word = word ^ crc
    crc = np.uint64(0)
    for byte in range(8):
        crc ^= np.uint64(_TABLES[7 - byte, np.int64((word >> np.uint64(8 * byte)) & np.uint64(0xFF))])
    return crc


@numba.njit(inline="always")
def crc32c(data, at, end):
    """The checksum of the bytes from index `at` up to `end`."""
    crc = np.uint64(0xFFFFFFFF)
    while end - at >= 8:
        if INSTRUCTION is not None:
            crc = _crc_of_eight(crc, _load_little(data, at))
        else:
            crc = _crc_of_eight_by_table(crc, _load_little(data, at))
        at += 8
    while at < end:
        crc = (crc >> np.uint64(8)) ^ np.uint64(_TABLES[0, np.int64((crc ^ np.uint64(data[at])) & np.uint64(0xFF))])
        at += 1
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))


# --- joining ---------------------------------------------------------------------------------------------------------

_HEADER = 61
_MAX_PREFIX = 32  # bytes of length, attributes, time and offset before a record
_CODEC, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
PLAIN, STAMPED, HOLES, OVERLAP = range(4)  # why the first batch cannot be sent as it is, if it cannot

_BYTES = numba.types.Array(numba.uint8, 1, "C")
_CONST_BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_NUMBERS = numba.types.Array(numba.int64, 1, "C")
_NUMBER = numba.int64
_ARGUMENTS = _CONST_BYTES, *[_NUMBER] * 4, numba.boolean, *[_NUMBERS] * 3, _BYTES, _NUMBERS
_SIGNATURE = numba.types.UniTuple(_NUMBER, 9)(*_ARGUMENTS)


@numba.njit(inline="always")
def _read_varint(data, at, end):
    """A zigzag varint and the index after it, which is beyond `end` if it is cut off."""
    value, shift = np.uint64(0), np.uint64(0)
    while at < end:
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
        if shift > np.uint64(63):
            break
    return np.int64(0), end + 1


@numba.njit(inline="always")
def _varint_size(value):
    rest = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while rest >= np.uint64(0x80):
        rest >>= np.uint64(7)
        size += 1
    return size


@numba.njit(inline="always")
def _write_varint(out, at, value):
    rest = np.uint64((value << 1) ^ (value >> 63))
    while rest >= np.uint64(0x80):
        out[at] = np.uint8((rest & np.uint64(0x7F)) | np.uint64(0x80))
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@numba.njit(inline="always")
def _index_of(numbers, count, number):
    """-1 if it is not among the first `count`."""
    for at in range(count):
        if numbers[at] == number:
            return at
    return -1


@numba.njit(inline="always")
def _marker_type(data, at, end):
    """Of the marker in a control batch: 0 for an abort, -1 if it cannot be decoded."""
    _length, at = _read_varint(data, at, end)
    _time, at = _read_varint(data, at + 1, end)
    _delta, at = _read_varint(data, at, end)
    key, at = _read_varint(data, at, end)
    if key > end - at:
        return np.int64(-1)
    return np.int64(1) if key < 4 else (np.int64(data[at + 2]) << 8) | np.int64(data[at + 3])


def _compile(function):
    """Compiles it now, and stores the result where that is possible."""
    options = {"boundscheck": False, "error_model": "numpy"}
    try:
        return numba.njit(_SIGNATURE, cache=True, **options)(function)
    except RuntimeError:  # neither the installation nor the home directory can be written
        return numba.njit(_SIGNATURE, **options)(function)


@_compile
def join(data, at, done, small, limit, contiguous, aborted, aborting, counts, out, runs):
    """Joins the uncompressed batches from index `at` on. Writes the records to `out`, after room for a header, and
    (first source offset, count) pairs of them to `runs`.

    - `done`: records before this source offset are left out.
    - `small`: a batch beyond this size that can be sent as it is ends the join.
    - `limit`: size of the joined batch, header included.
    - `contiguous`: whether a gap between source offsets ends the join.
    - `aborted`: producer id and first offset of each aborted transaction, in the order of offsets. The batches of these
      producers are left out up to their marker. `counts[0]` of them have begun.
    - `aborting`: the first `counts[1]` numbers are producers whose aborted transaction has begun and not ended. It has
      room for all. Both `aborting` and `counts` are changed: they hold after the last joined batch.

    Returns: index after the last joined batch, size of the joined batch, batches, records, pairs in `runs`, first and
    largest timestamp, next source offset, (leader epoch << 2) + why the first batch cannot be sent as it is.
    """
    end = len(data)
    limit = min(limit, len(out))
    written, count, pairs, batches = np.int64(_HEADER), np.int64(0), np.int64(0), np.int64(0)
    base_time, max_time, next_source, expected = np.int64(0), np.int64(0), done, np.int64(-1)
    epoch, why = np.int64(-1), np.int64(PLAIN)
    while end - at >= _HEADER:
        base = _load_big(data, at)
        size_and_epoch = _load_big(data, at + 8)
        size = (size_and_epoch >> 32) + 12
        if data[at + 16] != 2 or size < _HEADER or size > end - at:
            break
        attributes = (np.int64(data[at + 21]) << 8) | np.int64(data[at + 22])
        last_delta = _load_big(data, at + 23) >> 32
        first_time, last_time = _load_big(data, at + 27), _load_big(data, at + 35)
        records = _load_big(data, at + 53) & 0xFFFFFFFF
        if attributes & _CODEC or last_delta < 0 or records > size or (batches > 0 and base < next_source):
            break
        is_left_out = bool(attributes & _CONTROL) or records == 0
        if contiguous and (is_left_out or records != last_delta + 1 or (batches > 0 and base != next_source)):
            break
        reason = PLAIN
        if attributes & _LOG_APPEND_TIME:
            reason = STAMPED
        elif records != last_delta + 1:
            reason = HOLES
        elif base < done:
            reason = OVERLAP
        if (batches == 0 and is_left_out) or (reason == PLAIN and size > small):
            break
        if crc32c(data, at + 21, at + size) != (_load_big(data, at + 13) & 0xFFFFFFFF):
            break
        begun, producers = counts[0], counts[1]
        if attributes & _TRANSACTIONAL and records > 0:
            while 2 * begun < len(aborted) and aborted[2 * begun + 1] <= base + last_delta:
                if _index_of(aborting, producers, aborted[2 * begun]) < 0:
                    aborting[producers] = aborted[2 * begun]
                    producers += 1
                begun += 1
            found = _index_of(aborting, producers, _load_big(data, at + 43))
            is_left_out = is_left_out or found >= 0
            if found >= 0 and attributes & _CONTROL:
                marker = _marker_type(data, at + _HEADER, at + size)
                if marker < 0:
                    break
                if marker == 0:
                    producers -= 1
                    aborting[found] = aborting[producers]
        if (contiguous or batches == 0) and is_left_out:
            break
        # All of a batch is taken, or nothing.
        written_before, count_before, pairs_before, max_before = written, count, pairs, max_time
        last_before = runs[2 * pairs - 1] if pairs else np.int64(0)
        is_whole = True
        if not is_left_out:
            batch_end, read = at + size, at + _HEADER
            for _ in range(records):
                length, read = _read_varint(data, read, batch_end)
                if length < 4 or length > batch_end - read:
                    is_whole = False
                    break
                record_end = read + length
                flags = data[read]
                time, read = _read_varint(data, read + 1, record_end)
                delta, read = _read_varint(data, read, record_end)
                if read > record_end:
                    is_whole = False
                    break
                offset = base + delta
                if offset < done:
                    read = record_end
                    continue
                time = last_time if attributes & _LOG_APPEND_TIME else first_time + time
                if count == 0:
                    base_time = max_time = time
                rest = record_end - read
                length = 1 + _varint_size(time - base_time) + _varint_size(count) + rest
                if written + _MAX_PREFIX + rest > limit or 2 * pairs + 2 > len(runs):
                    is_whole = False
                    break
                written = _write_varint(out, written, length)
                out[written] = flags
                written = _write_varint(out, written + 1, time - base_time)
                written = _write_varint(out, written, count)
                _copy(out, written, data, read, rest)
                written += rest
                read = record_end
                count += 1
                max_time = max(max_time, time)
                if offset == expected:
                    runs[2 * pairs - 1] += 1
                else:
                    runs[2 * pairs], runs[2 * pairs + 1] = offset, 1
                    pairs += 1
                expected = offset + 1
            if read != batch_end:
                is_whole = False
        if not is_whole:
            written, count, pairs, max_time = written_before, count_before, pairs_before, max_before
            if pairs:
                runs[2 * pairs - 1] = last_before
            break
        why = reason if batches == 0 else why
        counts[0], counts[1] = begun, producers
        batches += 1
        at += size
        next_source = base + last_delta + 1
        # The lower 32 bits, as a signed number.
        epoch = ((size_and_epoch & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    return at, written, batches, count, pairs, base_time, max_time, next_source, (epoch << 2) + why
