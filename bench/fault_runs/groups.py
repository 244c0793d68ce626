"""Consumer groups that move on the source, and what the verifier finds of them on the target."""

import random
import threading
import time
from dataclasses import dataclass, field

from fault_runs.comparing import next_record
from fault_runs.reading import Reader, SeenPartition
from fault_runs.sides import Side
from fault_runs.workload import Workload
from heliograph.wire.consumer_groups import Committed, commit_offsets, committed_offsets
from heliograph.wire.errors import WireError

AHEAD = "faults-ahead"  # of the mirror, at times; the others commit only what is copied already
GROUPS = ("faults-fast", "faults-slow", AHEAD)
_SHARE = {"faults-fast": 1.0, "faults-slow": 0.3, AHEAD: 1.0}  # of what it has not read, at most, in one step
_MOVES_EVERY = {"faults-fast": 2, "faults-slow": 3, AHEAD: 2}  # in seconds
_CHECKED_EVERY = 3.0
_END = -1  # instead of a record: the group has read everything


@dataclass
class _Moves:
    """What a group has committed for one partition, not before the commit that was last found on the target."""

    offsets: list[int] = field(default_factory=lambda: [0])


class MovingGroups(threading.Thread):
    """Commits offsets on the source, and compares those on the target with them all the time.

    `mistranslated` has one line for each translated offset after which the group would read another record than after
    any of its commits, or one from before a commit that was translated already. A group that is ahead of the mirror is
    translated to the mirror's end: it may be anywhere before its last commit meanwhile.
    """

    def __init__(self, source: Side, target: Side, workloads: list[Workload], logs: tuple[Reader, Reader], seed: int):
        super().__init__(name="groups", daemon=True)
        self.mistranslated: list[str] = []
        self.checked = 0
        self._source = source
        self._target = target
        self._read, self._mirrored = logs
        self._rng = random.Random(f"groups/{seed}")
        self._partitions = [
            (workload.topic, partition)
            for workload in workloads
            if workload.has_groups
            for partition in range(workload.partitions)
        ]
        self._moves = {(group, key): _Moves() for group in GROUPS for key in self._partitions}
        self._wrong: set[tuple[str, tuple[str, int], int]] = set()
        self._may_move = threading.Event()
        self._may_move.set()
        self._is_idle = threading.Event()
        self._is_ending = threading.Event()

    def pause(self) -> None:
        self._may_move.clear()
        self._is_idle.wait(60)

    def resume(self) -> None:
        self._is_idle.clear()
        self._may_move.set()

    def end(self) -> None:
        self._is_ending.set()

    def run(self) -> None:
        turn = 0
        checked_at = time.monotonic()
        while not self._is_ending.wait(1.0):
            turn += 1
            if self._may_move.is_set():
                self._move([group for group in GROUPS if turn % _MOVES_EVERY[group] == 0])
            else:
                self._is_idle.set()
            if time.monotonic() - checked_at > _CHECKED_EVERY:
                checked_at = time.monotonic()
                self.check()

    def _move(self, groups: list[str]) -> None:
        """A commit that is not acknowledged may have landed all the same."""
        commits = {group: self._next_offsets(group) for group in groups}
        commits = {group: offsets for group, offsets in commits.items() if offsets}
        if commits:
            try:
                self._source.run(lambda client: commit_offsets(client, commits))
            except (WireError, OSError):
                return

    def _next_offsets(self, group: str) -> dict[tuple[str, int], Committed]:
        offsets = {}
        for key in self._partitions:
            seen = self._read.partitions[key]
            moves = self._moves[group, key].offsets
            read = next_record(seen.offsets, moves[-1])
            end = len(seen.offsets)
            if group != AHEAD:
                end = min(end, len(self._mirrored.partitions[key].offsets))
            more = int((end - read) * self._rng.random() * _SHARE[group])
            if more > 0:
                offset = seen.offsets[read + more - 1] + 1
                moves.append(offset)
                offsets[key] = Committed(offset)
        return offsets

    def translated(self) -> dict[tuple[str, tuple[str, int]], int] | None:
        """What is committed on the target, by group and source partition. None if it cannot be read now."""
        try:
            found = self._target.run(lambda client: committed_offsets(client, GROUPS))
        except (WireError, OSError):
            return None
        offsets = {}
        prefix = f"{self._source.alias}."
        for group, committed in found.items():
            if isinstance(committed, WireError):
                return None
            for (mirror, partition), commit in committed.items():
                key = mirror.removeprefix(prefix), partition
                if mirror.startswith(prefix) and key in self._partitions and commit.offset >= 0:
                    offsets[group, key] = commit.offset
        return offsets

    def check(self) -> None:
        """Every translated offset must belong to a commit."""
        for (group, key), offset in (self.translated() or {}).items():
            source, mirror = self._read.partitions[key], self._mirrored.partitions[key]
            reads_next = _next(mirror, offset)
            if reads_next == _END:
                continue  # the mirror's end, or more than its reader has read: looked at again at a checkpoint
            self.checked += 1
            moves = self._moves[group, key].offsets
            if group == AHEAD:
                is_behind = next_record(mirror.offsets, offset) <= next_record(source.offsets, moves[-1])
                matching = [0] if is_behind else []
            else:
                matching = [number for number, move in enumerate(moves) if _next(source, move) == reads_next]
            if matching:
                del moves[: matching[0]]
            elif (group, key, offset) not in self._wrong:
                self._wrong.add((group, key, offset))
                self.mistranslated.append(
                    f"{group} at {offset} of the mirror of {key[0]}-{key[1]} reads another record next than after "
                    f"any of its last {len(moves)} commits ({moves[0]} to {moves[-1]}) on the source"
                )

    def differing(self) -> list[str]:
        """While nothing moves and all is copied: groups that are not where they are on the source."""
        translated = self.translated()
        if translated is None:
            return ["offsets on the target cannot be read"]
        differing = []
        for (group, key), moves in self._moves.items():
            source, mirror = self._read.partitions[key], self._mirrored.partitions[key]
            if len(moves.offsets) == 1 and moves.offsets[0] == 0:
                continue  # it has committed nothing
            expected = _next(source, moves.offsets[-1])
            offset = translated.get((group, key))
            if offset is None or _next(mirror, offset) != expected or offset > mirror.next_offset:
                differing.append(
                    f"{group} is at {moves.offsets[-1]} of {key[0]}-{key[1]}, and at {offset} of its mirror, where it "
                    "would read another record next"
                )
        return differing


def _next(seen: SeenPartition, offset: int) -> int:
    """The record that is read next from an offset on."""
    number = next_record(seen.offsets, offset)
    return seen.digests[number] if number < len(seen.offsets) else _END
