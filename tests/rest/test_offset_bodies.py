"""Bodies of PATCH /connectors/{name}/offsets: what is wrong with them is said in Connect's words."""

from typing import Any

import pytest

from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE
from heliograph.rest.offset_bodies import check_entries, entries_of, wanted_offsets
from heliograph.rest.problems import Problem

PARTITION = {"cluster": "A", "topic": "t", "partition": 0}
SHOWN = "{cluster=A, topic=t, partition=0}"


def _checked(part: str, partition: Any, offset: Any) -> dict[tuple[str, int], int | None]:
    entries = entries_of({"offsets": [{"partition": partition, "offset": offset}]})
    check_entries(part, entries)
    return wanted_offsets("A", entries) if part == SOURCE else {}


def _why_not(part: str, partition: Any, offset: Any) -> str:
    with pytest.raises(Problem) as problem:
        _checked(part, partition, offset)
    assert problem.value.status == 400
    return str(problem.value)


def test_an_offset_is_that_of_the_last_record_and_null_resets() -> None:
    entries = entries_of(
        {
            "offsets": [
                {"partition": PARTITION, "offset": {"offset": 7}},
                {"partition": PARTITION | {"partition": 1}, "offset": None},
                {"partition": PARTITION, "offset": {"offset": 123}},
            ]
        }
    )
    check_entries(SOURCE, entries)
    assert wanted_offsets("A", entries) == {("t", 0): 123, ("t", 1): None}  # the last of two counts, as in Connect


def test_what_names_no_partition_can_only_be_reset() -> None:
    for garbage in (None, {}, {"cluster": 1}, PARTITION | {"cluster": "C"}, PARTITION | {"topic": 5}):
        assert _checked(SOURCE, garbage, None) == {}
    other = _why_not(SOURCE, PARTITION | {"cluster": "C"}, {"offset": 1})
    assert other == (
        "Source partition {cluster=C, topic=t, partition=0} is not one of this connector: it has cluster, topic and "
        "partition, and cluster is A"
    )
    assert "is not one of this connector" in _why_not(SOURCE, PARTITION | {"more": 1}, {"offset": 1})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "Partitions / offsets need to be provided for an alter offsets request"),
        ({"offsets": None}, "Partitions / offsets need to be provided for an alter offsets request"),
        ({"offsets": [], "more": 1}, 'Unrecognized field "more": the only one is offsets'),
        ({"offsets": {"a": 1}}, "offsets must be a list of objects with partition and offset"),
        ({"offsets": [5]}, "5 in offsets must be an object with partition and offset"),
        ({"offsets": [{"part": {}}]}, 'Unrecognized field "part" in offsets: known are partition and offset'),
        ({"offsets": [{"partition": 3}]}, "partition 3 must be an object, or null"),
        ({"offsets": [{"partition": {}, "offset": 3}]}, "offset 3 must be an object, or null"),
        (
            {"offsets": [{"partition": {"topic": ["t"]}, "offset": None}]},
            "Offsets may only contain primitive types as values, but field topic contains ARRAY",
        ),
    ],
)
def test_a_body_of_another_shape_is_refused(body: dict[str, Any], why: str) -> None:
    with pytest.raises(Problem) as problem:
        entries_of(body)
    assert (problem.value.status, str(problem.value)) == (400, why)


@pytest.mark.parametrize(
    ("partition", "offset", "why"),
    [
        (None, {"offset": 1}, "Source partitions may not be null"),
        (
            {"topic": "t", "partition": 0},
            {"offset": 1},
            "Source partition {topic=t, partition=0} is missing the 'cluster' key, which is required",
        ),
        (
            PARTITION | {"topic": None},
            {"offset": 1},
            "Source partition {cluster=A, topic=null, partition=0} has an invalid value null for the 'topic' key, "
            "which must be a string",
        ),
        (
            {"cluster": "A", "topic": "t"},
            {"offset": 1},
            "Source partition {cluster=A, topic=t} is missing the 'partition' key, which is required",
        ),
        *(
            (
                PARTITION | {"partition": value},
                {"offset": 1},
                f"Source partition {{cluster=A, topic=t, partition={shown}}} has an invalid value {shown} for the "
                f"'partition' key, which {must}",
            )
            for value, shown, must in (
                ("0", "0", "must be an integer"),
                (1.5, "1.5", "must be an integer"),
                (True, "true", "must be an integer"),
                (2**31, "2147483648", "must be an integer"),
                (-1, "-1", "cannot be negative"),
            )
        ),
        (
            PARTITION,
            {},
            f"Source offset {{}} for source partition {SHOWN} is missing the 'offset' key, which is required",
        ),
        *(
            (
                PARTITION,
                {"offset": value},
                f"Source offset {{offset={shown}}} for source partition {SHOWN} has an invalid value {shown} for the "
                f"'offset' key, which {must}",
            )
            for value, shown, must in (
                ("7", "7", "must be an integer"),
                (None, "null", "must be an integer"),
                (2**63, "9223372036854775808", "must be an integer"),
                (-1, "-1", "cannot be negative"),
            )
        ),
    ],
)
def test_what_is_wrong_with_a_partition_or_offset_is_said_in_connects_words(
    partition: Any, offset: Any, why: str
) -> None:
    assert _why_not(SOURCE, partition, offset) == why


def test_offsets_of_the_other_connectors_are_zero() -> None:
    checkpoint = {"group": "g", "topic": "t", "partition": 0}
    heartbeat = {"sourceClusterAlias": "A", "targetClusterAlias": "B"}
    for part, partition in ((CHECKPOINT, checkpoint), (HEARTBEAT, heartbeat)):
        assert _checked(part, partition, {"offset": 0}) == {}
        assert _why_not(part, partition, {"offset": 1}).endswith(
            "has an invalid value 1 for the 'offset' key; the only accepted value is 0"
        )
    assert "missing the 'group' key" in _why_not(CHECKPOINT, heartbeat, {"offset": 0})
    assert "missing the 'sourceClusterAlias' key" in _why_not(HEARTBEAT, checkpoint, {"offset": 0})


def test_messages_can_be_encoded_whatever_the_body_has() -> None:
    for partition in (PARTITION | {"topic": 5, "\ud800": "\udfff"}, PARTITION | {"\ud800": []}):
        _why_not(SOURCE, partition, {"offset": 1}).encode()
