"""A status is read whatever version wrote it: in a rolling upgrade, both are older and newer than we are."""

import json
from typing import Any

import pytest

from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal
from heliograph.service.flow_status import FlowStatus, decode, encode, from_json, to_json
from heliograph.service.other_runs import OtherRun
from heliograph.service.stalled import Stalled

PARTITION = MirrorPartition("orders", "A.orders", 3)
STATUS = FlowStatus(
    name="A->B",
    partitions=4,
    lag=7,
    refusals=(Refusal(PARTITION, "hole", 7, 5, "a hole"),),
    failed_topics={"too-long": "its name is too long"},
    states={"copying": 4},
    notices=(Notice(PARTITION, "data-loss", 2, 7, 5, "lost"),),
    run_id="run",
    other_runs=(OtherRun("other", "host", 1.5),),
    stalled=(Stalled(PARTITION, 9, 3, 2.5, 11),),
)


def test_what_is_written_is_read() -> None:
    assert decode(encode(STATUS)) == STATUS
    assert json.loads(encode(STATUS))["version"] == 1


def test_a_status_without_a_version_is_read() -> None:
    assert from_json(json.loads(json.dumps(to_json(STATUS)))) == STATUS


def _changed(value: Any, change: str) -> Any:
    """The same JSON with a field more, or the last field less, in every object that describes something."""
    if isinstance(value, list):
        return [_changed(entry, change) for entry in value]
    if not isinstance(value, dict):
        return value
    fields = {name: _changed(entry, change) for name, entry in value.items()}
    if change == "added":
        return fields | {"invented": {"later": 1}}
    return dict(list(fields.items())[:-1])


def test_unknown_fields_are_ignored() -> None:
    fields = _changed(json.loads(encode(STATUS)), "added")
    del fields["failed_topics"]["invented"], fields["states"]["invented"]
    del fields["events"]["invented"], fields["records_of_events"]["invented"]
    assert from_json(fields) == STATUS


def test_missing_fields_have_defaults_and_no_refusal_is_lost() -> None:
    read = from_json(_changed(json.loads(encode(STATUS)), "removed"))
    assert read.stalled == ()
    (refusal,) = read.refusals
    assert (refusal.reason, refusal.text, refusal.final) == ("hole", "a hole", True)
    assert (refusal.partition.topic, refusal.partition.partition) == ("orders", -1)
    assert (read.notices[0].kind, read.notices[0].text) == ("data-loss", "")
    assert read.other_runs == (OtherRun("other", "host", 0.0),)
    assert from_json({}) == FlowStatus()
    assert from_json({"version": 2, "name": "A->B", "refusals": None}) == FlowStatus(name="A->B")


@pytest.mark.parametrize("value", [b"", b"no JSON", b"[]", b"7", b'{"refusals": 7}', b'{"refusals": ["x"]}'])
def test_what_is_no_status_is_not_read(value: bytes) -> None:
    assert decode(value) is None
