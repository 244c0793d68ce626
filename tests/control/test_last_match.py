"""Finding the end of a mirror in its source by the mirror's last records."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from heliograph.control.mirror_end import last_match
from heliograph.wire.recode import DecodedRecord


def _log(values: Iterable[int]) -> list[DecodedRecord]:
    return [DecodedRecord(offset, 1000 + value, None, str(value).encode(), []) for offset, value in enumerate(values)]


def _match(source: list[DecodedRecord], mirror: list[DecodedRecord], noted: int, tail: int = 200) -> int | None:
    async def given() -> AsyncIterator[DecodedRecord]:
        for record in source:
            yield record

    return asyncio.run(last_match(given(), [record[1:] for record in mirror[-tail:]], noted))


def test_records_behind_the_noted_offset_are_found() -> None:
    source = _log(range(1000))
    assert _match(source, _log(range(700)), 640) == 699
    assert _match(source, _log(range(700)), 699) == 699
    assert _match(source, _log(range(5)), 2) == 4


def test_records_that_a_restart_of_mm2_has_copied_twice_do_not_hide_it() -> None:
    mirror = _log([*range(1051), *range(1001, 1101)])
    assert _match(_log(range(2000)), mirror, 1000) == 1100


def test_the_same_values_again_later_do_not_count() -> None:
    source = _log([*range(300), *range(300)])
    assert _match(source, _log(range(300)), 250) == 299


@pytest.mark.parametrize("mirror", [[*range(100), 5000], [7, 7, 7], [*range(500, 400, -1)]])
def test_what_the_source_does_not_have_is_not_found(mirror: list[int]) -> None:
    assert _match(_log(range(400)), _log(mirror), 0) is None


def test_a_hole_that_compaction_leaves_in_the_mirror_does_not_hide_the_end() -> None:
    mirror = _log([*range(100), *range(150, 200)])
    assert _match(_log(range(1000)), mirror, 120) == 199
