"""Settings that Kafka's clients and Connect have for the data path: compression, the rack, tolerated errors."""

import pytest

from heliograph.config import ConfigError
from heliograph.config.show.data_path import data_path
from heliograph.model.compression import Compression
from heliograph.model.flow import CONTINUE, FAIL

from .files import flow, notes, warnings


def test_without_compression_type_batches_keep_their_own() -> None:
    assert flow().writing.compression is None
    assert flow("B.producer.compression.zstd.level = 9\n").writing.compression is None


@pytest.mark.parametrize(
    ("lines", "compression"),
    [
        ("A->B.producer.override.compression.type = lz4\n", Compression("lz4", 9)),
        ("B.producer.compression.type = none\n", Compression("none")),
        ("B.producer.compression.type = snappy\n", Compression("snappy")),
        ("B.producer.compression.type = ZSTD\nB.producer.compression.zstd.level = 12\n", Compression("zstd", 12)),
        (
            "B.producer.compression.type = lz4\nA->B.producer.override.compression.type = gzip\n",
            Compression("gzip", -1),
        ),
    ],
)
def test_the_data_producers_compression_acts_where_it_is_set(lines: str, compression: Compression) -> None:
    assert flow(lines).writing.compression == compression
    assert (notes(lines), warnings(lines)) == ([], [])


@pytest.mark.parametrize(
    "key", ["A->B.producer.compression.type", "A.producer.compression.type", "producer.compression.type"]
)
def test_the_compression_of_other_producers_does_not_act(key: str) -> None:
    assert flow(f"{key} = zstd\n").writing.compression is None
    assert "compression.type" in "".join([*warnings(f"{key} = zstd\n"), *notes(f"{key} = zstd\n")])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("B.producer.compression.type = brotli", "'brotli' is not one of none, gzip, snappy, lz4, zstd"),
        ("B.producer.compression.gzip.level = 0", "'0' is too small: it must be -1 or more and not 0"),
        ("B.producer.compression.lz4.level = 18", "'18' is too large: it must be 17 or less"),
    ],
)
def test_a_compression_that_kafka_does_not_have_is_an_error(line: str, says: str) -> None:
    kind = line.split("compression.")[1].split(".")[0]
    lines = line if kind == "type" or "type" in line else f"B.producer.compression.type = {kind}\n{line}"
    with pytest.raises(ConfigError, match=says):
        flow(lines + "\n")


def test_the_rack_is_that_of_the_consumer_of_the_source() -> None:
    assert flow().reading.rack == ""
    assert flow("A.consumer.client.rack = eu-1a \n").reading.rack == "eu-1a"
    assert flow("A->B.consumer.client.rack = eu-1b\n").reading.rack == "eu-1b"
    assert flow("B.consumer.client.rack = eu-1a\n").reading.rack == ""


def test_only_what_is_set_is_shown() -> None:
    assert data_path(flow()) == []
    lines = "B.producer.compression.type = zstd\nA.consumer.client.rack = eu-1a\nerrors.tolerance = all\n"
    assert data_path(flow(lines)) == [
        ("compression", "zstd, for batches of another type"),
        ("fetched from", "replicas in rack eu-1a, where leaders name one"),
        ("refused records", "to the dead-letter topic"),
    ]


def test_tolerated_errors_are_parked_unless_the_file_says_what_becomes_of_refused_records() -> None:
    assert flow().policies.refused_record == FAIL
    assert flow("errors.tolerance = none\n").policies.refused_record == FAIL
    assert flow("errors.tolerance = all\n").policies.refused_record == CONTINUE
    assert flow("A->B.errors.tolerance = all\n").policies.refused_record == CONTINUE
    assert flow("errors.tolerance = all\nheliograph.on.refused.record = fail\n").policies.refused_record == FAIL
    assert flow("heliograph.on.refused.record = continue\n").policies.refused_record == CONTINUE
