"""Where the time goes, according to the benchmark: samples of `perf` are read, counted and reported."""

from dataclasses import replace
from pathlib import Path

import bench
import pytest
import report
import sampling
from results import Profile, Results, Source
from time_kinds import Kind, Owner, Process, Program, Sample, kind_of, owner_of, parse, summarize

# `perf script` of two rounds of workload 6, one of Heliograph and one of franz-go: two lines of each kind and process,
# with other numbers of processes and shorter paths.
_RECORDED = Path(__file__).parent / "perf_samples.txt"

_PROCESSES = {
    101: Process(Owner.SOURCE, Program.JAVA),
    102: Process(Owner.TARGET, Program.JAVA),
    103: Process(Owner.MIRROR, Program.PYTHON),
    104: Process(Owner.DRIVER, Program.PYTHON),
    105: Process(Owner.SPARK, Program.JAVA),
    106: Process(Owner.MIRROR, Program.GO),
}


def _recorded() -> list[Sample]:
    lines = [line for line in _RECORDED.read_text().splitlines() if not line.startswith("#")]
    samples = list(parse(lines))
    assert len(samples) == len(lines)
    return samples


def test_a_line_is_read_with_spaces_in_the_names_of_threads_and_functions() -> None:
    line = (
        " C2 CompilerThre   101   833.250000:      7f30d8288e3f Foo::bar(int, Map<A, B>) const (/usr/lib/jvm/libjvm.so)"
    )
    assert list(parse([line, "", "# a comment"])) == [
        Sample("C2 CompilerThre", 101, 833.25, "Foo::bar(int, Map<A, B>) const", "/usr/lib/jvm/libjvm.so")
    ]


def test_a_library_may_be_deleted_or_unknown() -> None:
    lines = [
        "python   103   1.000000:     7f30d8288e3f [unknown] (/memfd:code (deleted))",
        "python   103   2.000000:     7f30d8288e3f [unknown] ([unknown])",
    ]
    assert [sample.library for sample in parse(lines)] == ["/memfd:code (deleted)", "[unknown]"]


@pytest.mark.parametrize(
    ("program", "thread", "function", "library", "kind"),
    [
        (Program.PYTHON, "python", "_copy_to_iter", "[kernel.kallsyms]", Kind.NETWORK),
        (Program.PYTHON, "python", "tcp_recvmsg_locked", "[kernel.kallsyms]", Kind.NETWORK),
        (Program.JAVA, "data-plane-kafk", "copy_folio_from_iter_atomic", "[kernel.kallsyms]", Kind.FILES),
        (Program.GO, "franzgo", "exc_page_fault", "[kernel.kallsyms]", Kind.PAGES),
        (Program.JAVA, "data-plane-kafk", "finish_task_switch.isra.0", "[kernel.kallsyms]", Kind.KERNEL),
        (Program.PYTHON, "python", "_crc32c_hw_adler", "/lib/_crc32c.cpython-311.so", Kind.CHECKSUM),
        (Program.PYTHON, "python", "[unknown]", "/tmp/perf-90.map", Kind.JOINING),
        (Program.PYTHON, "python", "[unknown]", "//anon", Kind.JOINING),
        (Program.PYTHON, "python", "_PyEval_EvalFrameDefault", "/lib/libpython3.11.so.1.0", Kind.PYTHON),
        (Program.PYTHON, "python", "[unknown]", "/lib/uvloop/loop.cpython-311.so", Kind.LOOP),
        (Program.PYTHON, "python", "__memmove_avx512_unaligned_erms", "/lib/libc.so.6", Kind.MEMORY),
        (Program.PYTHON, "python", "LZ4_decompress_safe", "/lib/_block.cpython-311.so", Kind.COMPRESSION),
        (Program.PYTHON, "python", "aesni_gcm_encrypt", "/lib/libcrypto.so.3", Kind.TLS),
        (Program.PYTHON, "python", "malloc", "/lib/libc.so.6", Kind.OTHERS),
        (Program.JAVA, "data-plane-kafk", "int kafka.Log.read(int)", "/tmp/perf-7.map", Kind.JAVA),
        (Program.JAVA, "data-plane-kafk", "[unknown]", "/tmp/perf-7.map", Kind.JAVA),
        (Program.JAVA, "data-plane-kafk", "Interpreter", "/tmp/perf-7.map", Kind.INTERPRETER),
        (Program.JAVA, "data-plane-kafk", "StubRoutines (2)", "/tmp/perf-7.map", Kind.STUBS),
        (Program.JAVA, "data-plane-kafk", "JavaThread::run", "/lib/libjvm.so", Kind.JVM),
        (Program.JAVA, "C2 CompilerThre", "PhaseChaitin::Split", "/lib/libjvm.so", Kind.COMPILER),
        (Program.JAVA, "G1 Young RemSet", "G1RemSet::scan", "/lib/libjvm.so", Kind.COLLECTOR),
        (Program.JAVA, "GC Thread#0", "G1ParScanThreadState::trim_queue", "/lib/libjvm.so", Kind.COLLECTOR),
        (Program.GO, "franzgo", "hash/crc32.castagnoliSSE42Triple.abi0", "/bin/franzgo", Kind.CHECKSUM),
        (Program.GO, "franzgo", "runtime.memmove", "/bin/franzgo", Kind.MEMORY),
        (Program.JAVA, "GC Thread#0", "__memmove_avx512_unaligned_erms", "/lib/libc.so.6", Kind.COLLECTOR),
        (Program.JAVA, "data-plane-kafk", "int com.sun.crypto.provider.GCTR.update()", "/tmp/perf-7.map", Kind.TLS),
        (Program.GO, "franzgo", "runtime.(*gcControllerState).releaseNextGCMarkWorker", "/bin/franzgo", Kind.COLLECTOR),
        (Program.GO, "franzgo", "runtime.scanobject", "/bin/franzgo", Kind.COLLECTOR),
        (Program.GO, "franzgo", "github.com/twmb/franz-go/pkg/kgo.(*source).fetch", "/bin/franzgo", Kind.GO),
    ],
)
def test_functions_and_libraries_show_what_a_process_does(
    program: Program, thread: str, function: str, library: str, kind: Kind
) -> None:
    assert kind_of(Sample(thread, 1, 0.0, function, library), program) is kind


def test_time_of_no_process_that_takes_part_is_idle_or_of_others() -> None:
    assert owner_of(Sample("swapper", 0, 0.0, "pv_native_safe_halt", "[kernel.kallsyms]"), _PROCESSES) is Owner.IDLE
    assert owner_of(Sample("bash", 999, 0.0, "main", "/usr/bin/bash"), _PROCESSES) is Owner.OTHERS


def test_recorded_samples_are_counted_by_owner_and_kind() -> None:
    summary = summarize(_recorded(), _PROCESSES)
    assert summary.owners == {
        "others": 2,
        "source broker": 19,
        "the process that copies": 32,
        "target broker": 24,
        "idle": 2,
        "driver": 6,
        "Spark's JVM": 1,
    }
    assert summary.kinds["the process that copies"] == {
        "kernel: network": 4,
        "kernel: memory": 4,
        "memory moves": 4,
        "kernel: others": 4,
        "checksums": 4,
        "Python": 2,
        "event loop": 2,
        "joining": 2,
        "others": 2,
        "Go, compiled": 2,
        "garbage collection": 2,
    }
    assert summary.kinds["target broker"] == {
        "kernel: page cache": 2,
        "kernel: others": 2,
        "Java, compiled": 2,
        "kernel: network": 2,
        "Java's routines": 2,
        "kernel: memory": 2,
        "JVM, others": 2,
        "Java's compilers": 2,
        "Java, interpreted": 2,
        "memory moves": 2,
        "garbage collection": 2,
        "others": 2,
    }
    assert sum(sum(counts.values()) for counts in summary.kinds.values()) == sum(
        count for owner, count in summary.owners.items() if owner not in ("idle", "others")
    )


def test_a_machine_without_perf_is_benchmarked_without_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "program", lambda: None)
    plan, left_out = bench._possible(replace(bench.SHORTEST, profile=True))
    assert not plan.profile
    assert left_out == [f"where the time goes: {sampling.MISSING}"]


def test_the_report_says_whose_time_it_is_and_what_it_is_spent_on() -> None:
    results = Results(titles={"heliograph": "Heliograph"})
    results.sources.append(Source(6, "many", "some records", 6, 1000, 10, 5000, 0, 0, 1.0))
    owners = {"source broker": 20, "target broker": 40, "the process that copies": 10, "driver": 4, "Spark's JVM": 1}
    kinds = {
        "source broker": {"kernel: network": 15, "Java, compiled": 5},
        "target broker": {"Java, compiled": 30, "kernel: page cache": 10},
        "the process that copies": {"joining": 4, "Python": 6},
    }
    owners |= {"others": 3, "benchmark": 2, "idle": 20}
    results.profiles.append(Profile(6, "heliograph", 1000.0, 1.0, 100, owners, kinds))
    text = report.text(results)
    assert "| 6. many, Heliograph | 20 (25) | 40 (50) | 10 (12) | 5 (6) | 5 (6) | 20 | 100 |" in text
    assert "|  | joining | Python | others |\n| --- | --- | --- | --- |\n| 6. many, Heliograph | 40 | 60 | 0 |" in text
    assert "|  | kernel: network | kernel: page cache | Java, compiled | others |" in text
    assert "| 6. many, Heliograph | 75 / 0 | 0 / 25 | 25 / 75 | 0 / 0 |" in text


def test_a_report_without_profiles_does_not_mention_them() -> None:
    assert "Where the time goes" not in report.text(Results())
