"""Short versions of the programs in bench/, so that they keep working."""

import re
from pathlib import Path

from running.command import program_said

_BENCH = Path(__file__).parent.parent.parent / "bench"


def test_a_moment_of_soaking_loses_nothing() -> None:
    output = program_said(_BENCH / "soak.py", "--minutes", "0.05")
    written, copied = re.findall(r"\{.*?\}", output)
    assert written == copied


def test_hundreds_of_partitions_start_and_are_followed() -> None:
    output = program_said(_BENCH / "many_partitions.py", "--partitions", "200", "--seconds", "2", "--settle", "1")
    assert "start to first copy, with existing mirrors" in output
    assert "to the mirror: p50" in output


def test_some_offsets_are_kept() -> None:
    lines = program_said(_BENCH / "kept_offsets.py", "--scale", "0.01").splitlines()
    assert [line.split(",")[0].split(":")[0] for line in lines[:2]] == [
        "plain records",
        "a source that begins at offset 500000",
    ]
    assert len(lines) == 6


def test_a_ledger_with_some_history_is_measured() -> None:
    lines = program_said(_BENCH / "ledger.py", "--gaps", "100000", "--runs", "1").splitlines()
    assert [line.split(":")[0].split(" ")[0] for line in lines] == [
        "100000",
        "on",
        "the",
        "index",
        "an",
        "start",
        "memory",
    ]


def test_the_shortest_benchmark_measures_heliograph_and_mirrormaker() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(_BENCH)!r}); import bench; results = bench.shortest();"
        "copied = sorted((copy.tool, copy.peak_memory > 0) for copy in results.copies);"
        "print(results.failures(), copied)"
    )
    # Neither CPU time nor the records since the first look: so short a copy may end before that, and take less than the
    # kernel's clock can tell.
    assert program_said("-c", program).splitlines()[-1] == "[] [('heliograph', True), ('mm2', True)]"


def test_some_settings_are_compared() -> None:
    short = ("--records", "20000", "--per-batch", "10", "--only", "2", "--rounds", "1")
    lines = program_said(_BENCH / "tuning.py", *short).splitlines()
    assert lines[0].startswith("19,980 records in batches of 1.2 KB")
    assert [line.split(" | ")[0] for line in lines[4:]] == ["| defaults", "| `batch.size` 16384, MM2's default"]
    stored = [float(line.split(" | ")[2]) for line in lines[4:]]
    assert stored[0] > stored[1] > 1.2
    assert stored[1] < 16.4
