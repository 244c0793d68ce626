"""The verifier of `make faults` notices what it must notice, and a short run with faults is clean."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fault_runs.comparing import Findings, compare, compare_latest, next_record
from fault_runs.nemesis import Nemesis
from fault_runs.network_faults import network_faults
from run_faults import all_faults

_PROGRAM = Path(__file__).parent.parent.parent / "bench" / "run_faults.py"
_FAULTS = ("kill-driver", "kill-worker", "lose-answers", "move-target-leaders", "reset")
_LIMIT = 560  # seconds, for a machine that does several other things


@pytest.mark.parametrize(
    ("mirror", "found"),
    [
        ([1, 2, 3, 4, 5], Findings(5)),
        ([1, 2, 3], Findings(5, lost=2)),
        ([1, 3, 4, 5], Findings(5, lost=1)),
        ([1, 2, 3, 2, 3, 4, 5], Findings(5, twice=2)),
        ([1, 3, 2, 4, 5], Findings(5, misordered=1)),
        ([1, 2, 9, 4, 5], Findings(5, lost=1, altered=1)),
        ([], Findings(5, lost=5)),
    ],
)
def test_a_mirror_is_compared_with_its_source(mirror: list[int], found: Findings) -> None:
    assert compare([1, 2, 3, 4, 5], mirror, is_complete=True) == found


@pytest.mark.parametrize(
    ("mirror", "found"),
    [([1, 2], Findings(2)), ([1, 3], Findings(3, lost=1)), ([1, 2, 2], Findings(2, twice=1)), ([], Findings(0))],
)
def test_what_is_on_its_way_is_not_lost(mirror: list[int], found: Findings) -> None:
    assert compare([1, 2, 3, 4, 5], mirror, is_complete=False) == found


def test_of_a_compacted_topic_the_last_record_of_each_key_counts() -> None:
    source = {b"a": 1, b"b": 2, b"c": 3}
    assert compare_latest(source, dict(source), 9) == Findings(9)
    assert compare_latest(source, {b"a": 1, b"b": 7, b"d": 4}, 9) == Findings(9, lost=1, altered=2)


def test_a_group_reads_the_first_record_at_or_after_its_offset() -> None:
    offsets = [0, 1, 5, 6]
    assert [next_record(offsets, committed) for committed in (0, 1, 2, 5, 6, 7)] == [0, 1, 2, 2, 3, 4]


def test_the_seed_alone_decides_the_order_of_faults() -> None:
    def names(seed: int, count: int) -> list[str]:
        nemesis = Nemesis(list(all_faults("local").values()), seed, 1.0, lambda _text: None)
        return [nemesis.next_fault().name for _ in range(count)]

    known = set(all_faults("local"))
    assert names(5, 80) == names(5, 80) != names(6, 80)
    assert set(names(5, len(known))) == known
    assert {fault.name for fault in network_faults()} < known


def test_a_short_run_with_faults_is_clean() -> None:
    done = subprocess.run(
        [sys.executable, _PROGRAM, "--seed", "4", "--faults", ",".join(_FAULTS), "--count", str(len(_FAULTS))],
        capture_output=True,
        text=True,
        timeout=_LIMIT,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    applied = re.findall(r"^(\S+) +1 +[\d.]+ s$", done.stdout, re.MULTILINE)
    assert sorted(applied) == sorted(_FAULTS)
    sums = re.search(r"records checked (\d+), lost 0, twice 0, misordered 0, altered 0, mistranslated 0;", done.stdout)
    assert sums is not None, done.stdout
    assert int(sums[1]) > 1000


def test_every_fault_is_documented() -> None:
    page = (_PROGRAM.parent.parent / "docs" / "faults" / "README.md").read_text()
    assert {name for name in all_faults("standalone") if f"`{name}`" not in page} == set()
