"""Everything a record can carry arrives through the real command on real Spark."""

import random
import time
from pathlib import Path

import pytest

from heliograph.wire.records import encode
from logs import Pair, Record
from running.command import heliograph

_RECORDS = 100_000
_PARTITIONS = 4
_YEAR = 365 * 86_400_000


def _odd_records(rng: random.Random, count: int) -> list[Record]:
    now = int(time.time() * 1000)
    times = (now, 0, -1, 1, now + 3 * _YEAR, now - 40 * _YEAR, 2**42)
    keys = (None, b"", b"k", b"\x00\xff" * 9)
    values = (None, b"", b"v")
    headers: tuple[tuple[tuple[str, bytes | None], ...], ...] = (
        (),
        (("h", None),),
        (("h", b""), ("h", b"again"), ("h", None)),
        (("", b"nameless"), ("ключ", b"\xf0\x9f")),
    )
    return [
        Record(
            0,
            rng.choice(times) if rng.random() < 0.3 else now + number,
            rng.choice(keys) if rng.random() < 0.5 else str(number).encode(),
            rng.choice(values) if rng.random() < 0.2 else rng.randbytes(rng.randint(1, 120)),
            rng.choice(headers),
        )
        for number in range(count)
    ]


_KEEPS_BATCHES = "heliograph.join = off"


@pytest.mark.parametrize("setting", [_KEEPS_BATCHES, "heliograph.compiled.code = off", "heliograph.join = auto"])
def test_odd_records_arrive_identical(pair: Pair, topic: str, properties: Path, setting: str) -> None:
    count = _RECORDS if setting == _KEEPS_BATCHES else _RECORDS // 5
    rng = random.Random(3)
    pair.a.create(topic, partitions=_PARTITIONS, message_timestamp_after_max_ms=str(2**63 - 1), retention_ms="-1")
    for partition in range(_PARTITIONS):
        records = _odd_records(rng, count // _PARTITIONS)
        batches = []
        while records:
            size = rng.choice((1, 2, 50, 400))
            batches.append(encode(records[:size], rng.randrange(5)))
            del records[:size]
        pair.a.append(topic, batches, partition)
    properties.write_text(properties.read_text() + f"{setting}\n")
    done = heliograph("run", properties, "--until-caught-up", "--json")
    assert done.returncode == 0, done.stderr
    total = 0
    for partition in range(_PARTITIONS):
        expected = pair.a.read(topic, partition)
        assert pair.b.read(f"A.{topic}", partition) == expected
        boundaries = pair.a.boundaries(topic, partition)
        assert (pair.b.boundaries(f"A.{topic}", partition) == boundaries) == (setting == _KEEPS_BATCHES)
        assert {codec for _count, codec in boundaries} == {"none", "gzip", "snappy", "lz4", "zstd"}
        total += len(expected)
    assert total == count
