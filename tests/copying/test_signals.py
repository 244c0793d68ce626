"""Commands and reports of other versions: during a rolling upgrade, driver and leases differ."""

import json

from heliograph.copy.counts import SOURCE, Counts, Recent, Requests
from heliograph.copy.signals import Change, EndLease, Grant, Report, change_command, command_for, grant_command
from heliograph.copy.work import Copied, Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Notice, Refusal

PARTITION = MirrorPartition("t", "A.t", 0)


def _report() -> Report:
    counts = Counts(fetched=7, retries=3, appends=Requests(4, 1, 0.5), reports=Requests(2, 0, 0.25))
    counts.append("lz4", "", 10, 1000)
    counts.throttled[SOURCE] = 1.5
    progress = Progress(Position(10, 9, 3, "id"), 12, Copied(9, 900, 5, 6, 1), 2, 14)
    refusal = Refusal(PARTITION, "data-loss", 10, 9, "lost")
    notice = Notice(PARTITION, "k", 1, 2, 3, "n")
    return Report("lease", 1, 2, counts, {PARTITION: progress}, (refusal,), (notice,), 4, Recent(5, 6, 7, 0.5))


def test_a_report_is_read_as_it_was_written() -> None:
    assert Report.from_record(*_report().to_record()) == _report()


def test_a_report_of_a_later_version_is_read_without_what_it_adds() -> None:
    key, value = _report().to_record()
    fields = json.loads(value)
    fields |= {"version": 99, "later": {"a": 1}}
    fields["counts"]["throttled"]["elsewhere"] = 3.0
    for row in (*fields["counts"]["appended"], *fields["changed"], *fields["open"]):
        row.append("later")
    for row in (*fields["refusals"], *fields["notices"]):
        row.append("later")
    for row in (fields["recent"], fields["counts"]["appends"], fields["counts"]["reports"]):
        row.append("later")
    assert Report.from_record(key, json.dumps(fields).encode()) == _report()


def test_a_report_may_lack_every_field() -> None:
    assert Report.from_record(b"lease", b"{}") == Report("lease", 0, 0, Counts(), {}, ())


def test_commands_of_a_later_version_are_read_without_what_they_add() -> None:
    key, value = grant_command({"lease": Grant(1, 2, 0.5)})
    longer = {"lease": [*json.loads(value)["lease"], "later"]}
    assert command_for("lease", key, json.dumps(longer).encode()) == Grant(1, 2, 0.5)
    key, value = change_command({"lease": Change((PARTITION,), ())})
    longer = {"lease": [*json.loads(value)["lease"], []]}
    assert command_for("lease", key, json.dumps(longer).encode()) == Change((PARTITION,), ())
    assert command_for("lease", b"end", b'["lease"]') == EndLease()
    assert command_for("lease", b"end", b"no JSON") is None
    assert command_for("lease", b"later", b"{}") is None
