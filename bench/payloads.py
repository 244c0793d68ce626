"""The batches that source topics are made of: encoded once, in several kinds, and what is put into copies of them.

The contents come from a random generator with a fixed seed, so that every run writes the same.
"""

import random
import struct
import time
from collections.abc import Iterator

from crc32c import crc32c

from heliograph.wire.records import Record, encode

PER_BATCH = 143  # values of 100 bytes in a batch of 16 KB, a producer's default batch.size
PER_LARGE_BATCH = 360  # values of 1 KB, compressed, in a batch of 128 KB

DIFFERENT = 16
_TEXT = b"abcdefghijklmnopqrstuvwxyz0123456789"
_LZ4 = 3
_TRANSACTIONAL = 0x10
_CRC_AT, _CRC_FROM, _ATTRIBUTES_AT, _PRODUCER_AT = 17, 21, 21, 43
_KEY = struct.Struct(">qi")
_REPEATED = 0.6  # the share of records whose key comes again; the last of each stay


def now() -> int:
    return int(time.time() * 1000)


def small_batches(per_batch: int = PER_BATCH, different: int = DIFFERENT) -> list[bytes]:
    """Batches of 100-byte values, different from each other."""
    chance, time_ms = random.Random(1), now()
    return [encode(Record(0, time_ms, None, _value(chance)) for _ in range(per_batch)) for _ in range(different)]


def large_batches(per_batch: int = PER_LARGE_BATCH, different: int = DIFFERENT) -> list[bytes]:
    """Batches of 1 KB values, compressed with lz4 to about 40 %."""
    chance, time_ms = random.Random(2), now()
    return [
        encode((Record(0, time_ms, None, _document(chance)) for _ in range(per_batch)), _LZ4) for _ in range(different)
    ]


def incompressible_batches(per_batch: int, different: int = DIFFERENT) -> list[bytes]:
    """Batches of 1 KB values, compressed with lz4 to 98 %."""
    chance, time_ms = random.Random(6), now()
    # The encoder leaves a batch uncompressed that lz4 does not make any smaller: it finds these few bytes.
    return [
        encode((Record(0, time_ms, None, chance.randbytes(1000) + bytes(24)) for _ in range(per_batch)), _LZ4)
        for _ in range(different)
    ]


def ten_kilobyte_batches(per_batch: int, different: int = DIFFERENT) -> list[bytes]:
    return random_batches(10 * 1024, per_batch, different)


def megabyte_batches(per_batch: int, different: int = DIFFERENT) -> list[bytes]:
    return random_batches(1024 * 1024, per_batch, different)


def random_batches(size: int, per_batch: int, different: int = DIFFERENT) -> list[bytes]:
    """Batches of values that nothing compresses."""
    chance, time_ms = random.Random(5), now()
    return [
        encode(Record(0, time_ms, None, chance.randbytes(size)) for _ in range(per_batch)) for _ in range(different)
    ]


def keyed_batches(count: int) -> Iterator[bytes]:
    """Batches of 100-byte values in which some keys, at places that differ, come again a tenth of them later."""
    chance, time_ms, cycle = random.Random(4), now(), max(1, count // 10)
    keys = [_KEY.pack(0x5A5A5A5A5A5A5A5A, number) for number in range(PER_BATCH)]
    template = encode(Record(0, time_ms, key, _value(chance)) for key in keys)
    places = [template.index(key) for key in keys]
    for number in range(count):
        batch = bytearray(template)
        fresh, repeated = struct.pack(">q", number), struct.pack(">q", -1 - number % cycle)
        for place in places:
            batch[place : place + 8] = repeated if chance.random() < _REPEATED else fresh
        yield _sealed(batch)


def transactional(batch: bytes, producer: int, epoch: int, sequence: int) -> bytes:
    """The same batch as part of a producer's transaction."""
    changed = bytearray(batch)
    struct.pack_into(">h", changed, _ATTRIBUTES_AT, _TRANSACTIONAL)
    struct.pack_into(">qhi", changed, _PRODUCER_AT, producer, epoch, sequence)
    return _sealed(changed)


def _sealed(batch: bytearray) -> bytes:
    struct.pack_into(">I", batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_FROM:]))
    return bytes(batch)


def _value(chance: random.Random) -> bytes:
    return bytes(chance.choices(_TEXT, k=100))


def _document(chance: random.Random) -> bytes:
    """1 KB of JSON as services send it: the same names in each, ids that nothing compresses, words from a few."""
    words = ("created", "confirmed", "shipped", "returned", "Berlin", "Lisbon", "Nairobi", "Osaka", "card", "invoice")
    fields = [f'"{name}":"{chance.choice(words)}"' for name in ("status", "previous_status", "city", "payment", "tag")]
    fields += [f'"{name}_id":"{chance.getrandbits(128):032x}"' for name in ("order", "customer", "session", "trace")]
    items = [
        f'{{"product_id":"{chance.getrandbits(64):016x}","warehouse":"{chance.choice(words)}",'
        f'"quantity":{chance.randint(1, 9)},"price_cents":{chance.randint(100, 99999)},"currency":"EUR"}}'
        for _ in range(5)
    ]
    text = "{" + ",".join([*fields, f'"items":[{",".join(items)}]']) + ',"note":"'
    return (text.ljust(1022, "-") + '"}').encode()
