"""The records of the ledger's topic: entries in its journal, packed states in its index, pages. Pure.

The journal is written ahead: one entry for all intervals of a fetched chunk. Now and then entries are packed: then the
index has one record for each mirror partition, with everything up to some offset of the journal. Of two records for the
same mirror partition the one whose author had read further counts, whoever wrote last. Values of index and pages begin
with a line of JSON that has a version.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from heliograph.model.columns import Columns, are_many, from_json, from_runs, runs_of, to_json
from heliograph.model.interval import Interval
from heliograph.model.pages import Page, pack_integers, unpack_integers
from heliograph.model.partitions import TopicPartition

# Partitions of the ledger's topic.
JOURNAL, INDEX, PAGES = 0, 1, 2
_VERSION = 1
_RUNS = b'"runs":'  # in an entry's value; only numbers are before it
_START = b'["journal"]'  # the key of the record that says where to begin reading


class NewerFormat(Exception):
    """Written by a newer version of Heliograph."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Consecutive intervals of one mirror partition with the same source id: of a dense mirror with the same
    `foreign_offsets_before`, of one that preserves offsets with gaps between them.

    - `mirror_id`: topic id of the mirror. Intervals of a deleted mirror say nothing about the next one.
    - `filler`: common name of the transactional ids that fill the gaps.
    - `seen`: the journal offset up to which the author had read when it found its position. The entry counts only if
      that covers all entries of others about this mirror partition; None for what always counts.
    """

    partition: TopicPartition
    mirror_id: str
    intervals: Sequence[Interval]
    filler: str = ""
    seen: int | None = None


def to_record(entry: JournalEntry, author: str, number: int) -> tuple[bytes, bytes]:
    """Key and value. Each entry has a unique key, with its author and a number, so that compaction keeps all entries:
    which decision counts depends on those before it."""
    first, last = entry.intervals[0], entry.intervals[-1]
    value: dict[str, object] = {
        "source": first.source,
        "runs": [],
        "source_id": first.source_id,
        "shift": first.foreign_offsets_before,
    }
    if entry.filler:
        value["filler"] = entry.filler
    if first.fill:
        value["fill"] = True
    if entry.seen is not None:
        value["seen"] = entry.seen
    return _json([*entry.partition, first.target, last.end, entry.mirror_id, author, number]), _json(value).replace(
        _RUNS + b"[]", _RUNS + _runs_to_json(entry.intervals), 1
    )


@dataclass(frozen=True, slots=True)
class Author:
    """The writer of an entry, and its number among theirs. Empty for entries of version 0.1.0."""

    name: str = ""
    number: int = -1


def about(key: bytes) -> tuple[TopicPartition, Author]:
    """The source partition of an entry, and its author."""
    topic, partition, _target, _end, *rest = json.loads(key)
    return (topic, partition), Author(*rest[1:])


def from_record(key: bytes, value: bytes) -> JournalEntry:
    topic, partition, target, _end, *rest = json.loads(key)
    before, _name, rest_of_value = value.partition(_RUNS + b"[")
    runs, _bracket, after = rest_of_value.partition(b"]")
    fields = json.loads(before + _RUNS + b"[]" + after)
    filler = fields.get("filler", "")
    first = Interval(target, fields["source"], 0, fields["source_id"], fields["shift"], fields.get("fill", False))
    # Version 0.1.0 had the id of the mirror in the value.
    mirror = rest[0] if rest else fields["mirror_id"]
    return JournalEntry((topic, partition), mirror, _intervals(runs, first, bool(filler)), filler, fields.get("seen"))


def _runs_to_json(intervals: Sequence[Interval]) -> bytes:
    """The count of each interval and the width of the gap after it."""
    if isinstance(intervals, Columns):
        return to_json(runs_of(intervals))
    runs = [intervals[0].count]
    for interval, following in pairwise(intervals):
        runs += [following.source - interval.source - interval.count, following.count]
    return _json(runs)


def _intervals(text: bytes, first: Interval, gaps_are_filled: bool) -> Sequence[Interval]:
    """From runs without their brackets; of the first interval only the count is missing."""
    if are_many(text.count(b",") // 2 + 1):
        return from_runs(from_json(text), first, gaps_are_filled)
    runs = json.loads(b"[" + text + b"]")
    intervals = []
    target, source, foreign, fill = first.target, first.source, first.foreign_offsets_before, first.fill
    for count, gap in zip(runs[::2], [*runs[1::2], 0], strict=True):
        intervals.append(Interval(target, source, count, first.source_id, foreign, fill))
        fill = False  # only the first can have it
        source += count + gap
        target += count
        if gaps_are_filled:
            target += gap
            foreign += gap
    return tuple(intervals)


@dataclass(frozen=True, slots=True)
class Packed:
    """All intervals of one mirror partition up to the journal's entry at offset `written`.

    `since` is the offset of the first entry, `time` the timestamp of the last in milliseconds. `era` grows when the
    journal was truncated or lost, so that its offsets begin again; `number` when the same is packed again. `unused`:
    keys of pages that are not needed once this record counts; whoever packs next deletes them.
    """

    partition: TopicPartition
    mirror_id: str
    pages: tuple[Page, ...]
    written: int
    since: int
    time: int = 0
    era: int = 0
    number: int = 0
    filler: str = ""
    unused: tuple[str, ...] = ()
    author: Author = field(default_factory=Author)  # of the last entry
    written_by_others: int = -1  # the offset of the last entry that is not theirs

    @property
    def key(self) -> bytes:
        return _json([*self.partition, self.mirror_id, *self.rank])

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of two records the one with the higher rank counts."""
        return self.era, self.written, self.number


def to_index(packed: Packed) -> bytes:
    source_ids = list(dict.fromkeys(page.first.source_id for page in packed.pages))
    rows = [
        (
            page.location,
            page.tag,
            page.size,
            *(page.first.target, page.first.source, page.first.count, page.first.foreign_offsets_before),
            *(int(page.first.fill), page.first.decided),
            *(page.last.target, page.last.source, page.last.count, page.last.foreign_offsets_before),
            source_ids.index(page.first.source_id),
            len(page.data),
        )
        for page in packed.pages
    ]
    table = _pack_table(rows) if rows else b""
    head = {
        "version": _VERSION,
        "since": packed.since,
        "time": packed.time,
        "filler": packed.filler,
        "unused": packed.unused,
        "author": [packed.author.name, packed.author.number, packed.written_by_others],
        "source_ids": source_ids,
        "table": len(table),
    }
    return _json(head) + b"\n" + table + b"".join(page.data for page in packed.pages)


def from_index(key: bytes, value: bytes) -> Packed:
    topic, partition, mirror_id, era, written, number = json.loads(key)
    head, rest = _split(value)
    table, at = rest[: head["table"]], head["table"]
    pages = []
    for row in _unpack_table(table) if table else ():
        location, tag, size, target, source, count, foreign, fill, decided, *last, source_id, length = row
        name = head["source_ids"][source_id]
        first = Interval(target, source, count, name, foreign, bool(fill), decided)
        end = first if size == 1 else Interval(last[0], last[1], last[2], name, last[3])
        pages.append(Page(first, end, size, location, rest[at : at + length], tag))
        at += length
    fields = head["since"], head["time"], era, number, head["filler"], tuple(head["unused"])
    name, last, others = head["author"]
    return Packed((topic, partition), mirror_id, tuple(pages), written, *fields, Author(name, last), others)


def page_key(partition: TopicPartition, mirror_id: str, page: Page) -> str:
    values = [*partition, mirror_id, page.first.target, page.last.end, page.tag]
    return json.dumps(values, separators=(",", ":"))


def page_value(page: Page) -> bytes:
    """Complete, so that a page can be read without the index."""
    first = page.first
    head = {
        "version": _VERSION,
        "size": page.size,
        "first": [first.target, first.source, first.count, first.foreign_offsets_before, first.fill, first.decided],
        "source_id": first.source_id,
    }
    return _json(head) + b"\n" + page.data


def page_data(value: bytes, page: Page) -> bytes | None:
    """The bytes of a page of the index; None if the record is another page."""
    head, rest = _split(value)
    first = page.first
    same = head["first"] == [
        first.target,
        first.source,
        first.count,
        first.foreign_offsets_before,
        first.fill,
        first.decided,
    ]
    return rest if same and head["size"] == page.size and head["source_id"] == first.source_id else None


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin reading: entries before `journal` are packed. So are those before `converted` in the topic of
    version 0.1.0, which has one entry for each gap and is compacted."""

    journal: int = 0
    converted: int = -1

    def to_record(self) -> tuple[bytes, bytes]:
        return _START, _json({"version": _VERSION, "journal": self.journal, "converted": self.converted}) + b"\n"

    @staticmethod
    def from_value(value: bytes) -> "Start":
        head, _rest = _split(value)
        return Start(head["journal"], head["converted"])


@dataclass(slots=True)
class Index:
    """The index, read record by record: the record that counts for each mirror partition."""

    start: Start = field(default_factory=Start)
    packed: dict[TopicPartition, dict[str, Packed]] = field(default_factory=dict)
    beaten: dict[bytes, None] = field(default_factory=dict)  # keys of records that no longer count

    def take(self, key: bytes, value: bytes | None) -> None:
        if key == _START:
            if value is not None:
                self.start = Start.from_value(value)
            return
        if value is None:
            self._forget(key)
            return
        new = from_index(key, value)
        known = self.packed.setdefault(new.partition, {})
        before = known.get(new.mirror_id)
        if before is None or new.rank >= before.rank:
            known[new.mirror_id] = new
            if before is not None and before.rank != new.rank:
                self.beaten[before.key] = None
        else:
            self.beaten[new.key] = None

    def _forget(self, key: bytes) -> None:
        topic, partition, mirror_id, *rank = json.loads(key)
        known = self.packed.get((topic, partition), {})
        if mirror_id in known and known[mirror_id].rank == tuple(rank):
            del known[mirror_id]
        self.beaten.pop(key, None)


def _pack_table(rows: Sequence[tuple[int, ...]]) -> bytes:
    """By columns, each row as its difference to the one before."""
    import numpy as np

    return pack_integers(list(np.diff(np.array(rows, np.int64), axis=0, prepend=0).T))


def _unpack_table(table: bytes) -> list[list[int]]:
    import numpy as np

    rows: list[list[int]] = np.cumsum(np.stack(unpack_integers(table), axis=1), axis=0).tolist()
    return rows


def _split(value: bytes) -> tuple[dict[str, Any], bytes]:
    line, _newline, rest = value.partition(b"\n")
    head = json.loads(line)
    if head["version"] > _VERSION:
        raise NewerFormat(
            f"the ledger has records of format {head['version']}, and this version of Heliograph knows formats up to "
            f"{_VERSION}: a newer version has written them; run that one, or a later one"
        )
    return head, rest


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
