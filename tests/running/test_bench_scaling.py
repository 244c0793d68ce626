"""The plots of cost against bytes, partitions and topics."""

import argparse
import asyncio
import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import loglog
import pytest
import scaling
import scaling_report
from clusters import Ends
from logfiles import Survey, surveys
from loglog import Line, Panel
from results import Copy
from scaling import Load
from scaling_report import Following, Measured

from heliograph.wire.records import Record, encode
from running.command import program_said

_BENCH = Path(__file__).parent.parent.parent / "bench"


def _measured() -> Measured:
    measured = Measured({"cores": "2"}, {"heliograph": "Heliograph", "franz-go": "franz-go"}, "make bench-scaling")
    for tool, cpu in (("heliograph", 0.5), ("franz-go", 1.0)):
        measured.sizes += [
            Copy(100, tool, number, records=1_000_000, size=100_000_000, seconds=1.0, mirror_cpu=cpu * number)
            for number in (1, 2, 3)
        ]
    measured.partitions.append(Copy(10, "heliograph", 1, records=2_000_000, size=1, seconds=2.0, mirror_cpu=0.4))
    measured.partitions_idle.append(Following(10, 0.012, 5.0))
    measured.topics.append(Following(1000, 0.034, 9.0, (6.0, 8.0, 7.0)))
    return measured


@pytest.mark.parametrize("size", scaling.SIZES)
def test_batches_hold_16_kilobytes_or_one_record(size: int) -> None:
    load = Load.of_size(size, 1.0)
    batch = load.batches[0]
    one_more = len(batch) + (len(batch) - 61) / load.per_batch
    assert len(batch) <= 16_384 or load.per_batch == 1
    assert one_more > 14_500
    assert load.workload.records <= 2_000_000
    assert load.workload.records * size <= 200_000_000


def test_the_same_records_go_to_any_number_of_partitions() -> None:
    loads = [Load.of_partitions(partitions, 1.0) for partitions in scaling.PARTITIONS]
    assert [(len(load.topics), load.workload.partitions) for load in loads] == [
        (1, 1),
        (1, 10),
        (1, 100),
        (10, 100),
        (100, 100),
    ]
    assert {(load.workload.records, load.per_batch) for load in loads} == {(2_000_000, 100)}


def test_the_pattern_of_a_load_has_all_its_topics_and_no_others() -> None:
    few, many = Load.of_topics(1), Load.of_topics(10)
    assert few.pattern == few.topics[0]
    assert all(re.fullmatch(many.pattern, topic) for topic in many.topics)
    assert not re.fullmatch(many.pattern, Load.of_topics(100).topics[0])


def test_a_small_scale_has_fewer_partitions() -> None:
    assert scaling.steps(scaling.PARTITIONS, 1.0) == list(scaling.PARTITIONS)
    assert scaling.steps(scaling.PARTITIONS, 0.01) == [1, 10, 100]
    assert scaling.steps(scaling.TOPICS, 0.00001) == [1]


def test_the_report_names_the_command_that_it_is_from() -> None:
    usual = argparse.Namespace(scale=1.0, rounds=3, only=None)
    assert scaling.make_command(usual) == "make bench-scaling"
    shorter = argparse.Namespace(scale=0.5, rounds=1, only="topics")
    assert scaling.make_command(shorter) == 'make bench-scaling ARGS="--scale 0.5 --rounds 1 --only topics"'


def test_the_report_has_medians_and_ranges() -> None:
    text = scaling_report.text(_measured())
    assert "| 100 B | Heliograph | 1,000,000 | 10.00 (5.00 to 15.00) | 1.00 (0.50 to 1.50) | 100 (100 to 100) |" in text
    assert "| 10 | 0.20 | 1,000 k | 1.2 |" in text
    assert "| 1,000 | 7.0 (6.0 to 8.0) | 9.0 | 3.4 |" in text


def test_a_part_that_was_not_measured_is_not_in_the_report() -> None:
    measured = Measured(topics=_measured().topics)
    assert [panel.title for panel in scaling_report.panels(measured)] == ["Topics"]
    assert "## Bytes" not in scaling_report.text(measured)


def test_report_plot_and_numbers_are_written(tmp_path: Path) -> None:
    report, picture, raw = scaling_report.write(_measured(), tmp_path / "new" / "scaling.md")
    assert "(scaling.svg)" in report.read_text()
    texts = [element.text for element in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert {"Bytes", "Partitions", "Topics", "size of a record", "core-seconds of the mirror"} <= set(texts)
    assert raw.read_text().startswith("{")


def test_axes_go_from_one_power_of_ten_to_another() -> None:
    assert loglog.decades([0.03, 250.0]) == (0.01, 1000.0)
    assert loglog.decades([1.0]) == (1.0, 10.0)
    assert loglog.ticks(0.01, 10.0) == [0.01, 0.1, 1.0, 10.0]
    assert [loglog.short(value, "B") for value in (10, 1e4, 1e6)] == ["10 B", "10 KB", "1 MB"]
    assert [loglog.short(value) for value in (0.01, 3000.0)] == ["0.01", "3 k"]


def test_a_tenfold_value_is_as_far_away_everywhere() -> None:
    scale = loglog.Scale(1.0, 1000.0, 100.0, 400.0)
    assert [round(scale.at(value)) for value in (1.0, 10.0, 100.0, 1000.0)] == [100, 200, 300, 400]


def test_what_has_no_logarithm_is_left_out_of_a_plot() -> None:
    line = Line("heliograph", "some", ((1.0, 0.0), (10.0, 5.0)))
    assert line.drawn == [(10.0, 5.0)]
    assert loglog.svg([Panel("a", "x", "y", (line,))], "plot").count("<circle") == 1
    nothing = Panel("a", "x", "y", (Line("heliograph", "none", ((1.0, 0.0),)),))
    assert ">failed<" in loglog.svg([nothing], "plot")


def test_topics_are_surveyed_by_their_whole_names(tmp_path: Path) -> None:
    batch = encode([Record(0, 1000, None, b"value")] * 3)
    for folder in ("w1-0", "w1-1", "w1-1-0", "w1-10-0"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "00000000000000000000.log").write_bytes(batch)
    found = surveys(tmp_path, ["w1", "w1-1", "missing"])
    assert {topic: survey.visible for topic, survey in found.items()} == {"w1": 6, "w1-1": 3, "missing": 0}
    assert found["missing"] == Survey()


def test_the_ends_of_several_topics_are_added_up() -> None:
    class Answering:
        async def send_parts(self, _key, _version, _parts, decode):  # type: ignore[no-untyped-def]
            topics = [(b"one", [(0, 0, -1, 5), (1, 0, -1, 6)]), (b"longer", [(0, 3, -1, -1)])]
            frame = struct.pack(">ii", 0, len(topics))
            for name, partitions in topics:
                frame += struct.pack(f">h{len(name)}si", len(name), name, len(partitions))
                frame += b"".join(struct.pack(">ihqq", *partition) for partition in partitions)
            return decode(memoryview(frame))

    assert asyncio.run(Ends(Answering(), ["one", "longer"], 2).total()) == 11  # type: ignore[arg-type]


@pytest.mark.parametrize(("part", "row"), [("bytes", "| 1 MB |"), ("partitions", "| 10 |"), ("topics", "| 1 |")])
def test_a_short_version_measures(part: str, row: str, tmp_path: Path) -> None:
    short = ["--scale", "0.001", "--rounds", "1", "--only", part, "--output", str(tmp_path)]
    program = (
        f"import sys; sys.path.insert(0, {str(_BENCH)!r}); import scaling; scaling.SIZES = (1_000_000,);"
        f"sys.exit(scaling.main({short!r}))"
    )
    assert row in program_said("-c", program)
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".svg", ".json"}
