"""Up to which size batches cost less to join than to append: the constants of `heliograph/wire/joining.py`.

An append's cost is the difference between two copies of the same topic, with and without joining: CPU of Heliograph and
of both brokers, per batch. The cost of joining is measured without brokers, for each compression type and for batches
of several sizes, as the time that `classify` takes for them in addition. `make bench-joining`.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import measuring
from bench import tidy
from clusters import started
from payloads import large_batches, small_batches
from results import Copy
from stage import Stage
from tools import TOOLS, heliograph_with
from workloads import WORKLOADS, write

from heliograph.copy.classified import Rules
from heliograph.copy.classify import classify
from heliograph.model.compression import COMPRESSION_TYPES
from heliograph.sandbox.processes import Processes
from heliograph.wire import joining
from heliograph.wire.batches import split
from heliograph.wire.kernels.loading import load
from heliograph.wire.recode import records_of
from heliograph.wire.records import Record, encode

_CHUNK = 4 * 1024 * 1024  # what one fetch brings of a partition
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)  # KB, of batches as they are sent
_KINDS = {"100-byte values": (small_batches, 112), "1 KB of JSON": (large_batches, 1036)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=0.5, help="times 3.5 million records for the cost of an append")
    options = parser.parse_args()
    load()
    cost = append_cost(options.rounds, options.scale)
    _say(f"an append costs {cost * 1e6:.0f} µs of CPU, Heliograph and brokers together\n")
    _say("µs to join one batch of that size in KB; * where joining costs less than the append")
    _say(f"{'':<24}" + "".join(f"{size:>9}" for size in _SIZES))
    for codec, name in enumerate(COMPRESSION_TYPES):
        for kind in _KINDS:
            costs = [join_cost(kind, codec, size * 1024) for size in _SIZES]
            cells = "".join(f"{seconds * 1e6:>8.1f}{'*' if seconds < cost else ' '}" for seconds in costs)
            _say(f"{name + ', ' + kind:<24}{cells}")
    return 0


def append_cost(rounds: int, scale: float) -> float:
    """Core-seconds for each batch that is appended by itself instead of joined, without what joining it costs."""
    (joined, *_), workload = TOOLS, WORKLOADS[0]
    single = heliograph_with(1, "heliograph.join=off")
    differences = []
    with started() as (sandbox, pair), Processes(folder=sandbox.folder / "tools", remove=False) as processes:
        stage = Stage.of(pair, processes)
        survey = asyncio.run(write(workload, pair.source, round(workload.records * scale)))
        for number in range(rounds + 1):  # the first one warms the brokers up
            spent = []
            for tool in (joined, single):
                copied = measuring.copy(stage, workload, survey, tool, number, measuring.PATIENCE)
                tidy(stage, workload)
                spent.append(_cpu(copied))
            if number:
                differences.append((spent[1] - spent[0]) * survey.visible / survey.batches)
    return statistics.median(differences) + join_cost("100-byte values", 0, 16 * 1024)


def _cpu(copied: Copy) -> float:
    """Core-seconds per record."""
    if copied.failure:
        raise SystemExit(copied.failure)
    return (copied.mirror_cpu + copied.broker_cpu) / copied.records


def join_cost(kind: str, codec: int, size: int) -> float:
    """Seconds that `classify` takes longer for a batch of that size when it joins it with its neighbours."""
    batch = _batch(kind, codec, size)
    data = bytearray()
    records = next(iter(split(batch))).count
    for number in range(max(4, min(_CHUNK // len(batch), 2000))):
        data += (number * records).to_bytes(8, "big") + batch[8:]
    count = len(data) // len(batch)
    with _everything_is_small():
        with_join = _seconds(data, Rules())
    return (with_join - _seconds(data, Rules(join_up_to=0))) / count


def _batch(kind: str, codec: int, size: int) -> bytes:
    """A batch of about that size."""
    make, each = _KINDS[kind]
    count = max(1, size // each)
    for _ in range(4):
        records = [record for part in split(make(count, 1)[0]) for record in records_of(part)]
        batch = encode((Record(0, record.timestamp, record.key, record.value) for record in records), codec)
        count = max(1, round(count * size / len(batch)))
    return batch


@contextmanager
def _everything_is_small() -> Iterator[None]:
    before = joining.SMALL, dict(joining._SMALL_COMPRESSED)
    joining.SMALL = 1 << 30
    joining._SMALL_COMPRESSED.update(dict.fromkeys(joining._SMALL_COMPRESSED, 1 << 30))
    try:
        yield
    finally:
        joining.SMALL = before[0]
        joining._SMALL_COMPRESSED.update(before[1])


def _seconds(data: bytearray, rules: Rules) -> float:
    """The median of some runs."""
    took = []
    for _ in range(7):
        began = time.perf_counter()
        classify(memoryview(data), 0, 0, rules)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
