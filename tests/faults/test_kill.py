"""kill -9 at random moments, again and again, while a producer writes."""

import os
import random
import signal
import threading
import time
from functools import partial
from pathlib import Path

from logs import Pair, some_records, until
from running.command import heliograph, start

# KILLS=10 and more for a night.
_KILLS = int(os.environ.get("KILLS", "3"))
_PARTITIONS = 3


def test_kills_of_the_driver_lose_and_repeat_nothing(pair: Pair, topic: str, properties: Path, tmp_path: Path) -> None:
    pair.a.create(topic, partitions=_PARTITIONS)
    kept = f"{topic}-kept"
    pair.a.create(kept)
    pair.a.skip(kept, 150_000)
    with properties.open("a") as file:
        file.write("\nheliograph.offsets = preserve\nheliograph.preserve.topics = .*-kept\n")
    written = 0
    stop = threading.Event()

    def produce() -> None:
        nonlocal written
        while not stop.wait(0.2):
            for partition in range(_PARTITIONS):
                pair.a.write(topic, some_records(200, start=written), partition, per_batch=10)
            pair.a.transaction(kept, 20, commit=written % 600 > 0, per_batch=7)
            written += 200

    producer = threading.Thread(target=produce)
    producer.start()
    rng = random.Random(11)
    log = tmp_path / "log"
    moved = set()
    try:
        for _ in range(_KILLS):
            process = start("run", properties, log=log)
            try:
                before = _end(pair, topic)
                until(partial(_has_moved, pair, topic, before), log.read_text)
                time.sleep(rng.uniform(0.0, 1.0))
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            moved.add(_end(pair, topic))
    finally:
        stop.set()
        producer.join()
    assert len(moved) == _KILLS, "each run must have copied something"
    done = heliograph("run", properties, "--until-caught-up")
    assert done.returncode == 0, done.stderr
    for partition in range(_PARTITIONS):
        copied = pair.b.read(f"A.{topic}", partition)
        assert len(copied) == written
        assert copied == pair.a.read(topic, partition)
    assert pair.a.read_with_offsets(kept) == pair.b.read_with_offsets(f"A.{kept}")
    assert pair.a.bounds(kept)[1] == pair.b.bounds(f"A.{kept}")[1]


def _has_moved(pair: Pair, topic: str, before: int) -> bool:
    return _end(pair, topic) != before


def _end(pair: Pair, topic: str) -> int:
    """Records in the mirror, 0 while there is none."""
    mirror = f"A.{topic}"
    return sum(pair.b.bounds(mirror, partition)[1] for partition in range(pair.b.partitions(mirror)))
