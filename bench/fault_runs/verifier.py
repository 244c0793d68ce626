"""The verifier of a run: writes, reads both sides, moves groups, and compares."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from fault_runs.comparing import Findings, compare, compare_latest
from fault_runs.groups import MovingGroups
from fault_runs.pauses import Pauses
from fault_runs.reading import Reader
from fault_runs.sides import Side
from fault_runs.workload import Workload
from fault_runs.writing import Writer
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.topic_requests import NewTopic, create_topics

SETTLES_WITHIN = 180.0
_LOOKS_EVERY = 0.25


class Verifier:
    """`problems` are sentences about what was found; `findings` counts them as of the last checkpoint."""

    def __init__(self, source: Side, target: Side, workloads: Sequence[Workload], seed: int) -> None:
        self._source = source
        self._target = target
        self._workloads = list(workloads)
        self.problems: list[str] = []
        self.findings = Findings()
        self.read = Reader(source.bootstrap, workloads, lambda topic: topic)
        self.mirrored = Reader(target.bootstrap, workloads, self._mirror)
        self.writers = [Writer(source.bootstrap, workload) for workload in workloads]
        self.groups = MovingGroups(source, target, self._workloads, (self.read, self.mirrored), seed)
        self.pauses = Pauses(self._workloads, self.read, self.mirrored)

    def _mirror(self, topic: str) -> str:
        return f"{self._source.alias}.{topic}"

    def create_topics(self) -> None:
        topics = [NewTopic(each.topic, each.partitions, 3, each.settings) for each in self._workloads]
        outcome = self._source.run(lambda client: create_topics(client, topics))
        if errors := {topic: error for topic, error in outcome.items() if error is not None}:
            raise RuntimeError(f"topics cannot be created: {errors}")

    def start(self) -> None:
        """Begins to write, and returns when Heliograph has created all mirrors."""
        for thread in (*self.writers, self.read):
            thread.start()
        if not _until(self._has_mirrors, SETTLES_WITHIN):
            raise RuntimeError("Heliograph has not created all mirrors")
        for thread in (self.mirrored, self.groups, self.pauses):
            thread.start()

    def end(self) -> None:
        threads: list[Writer | Reader | MovingGroups | Pauses] = [
            *self.writers,
            self.read,
            self.mirrored,
            self.groups,
            self.pauses,
        ]
        for thread in threads:
            thread.end()
        for thread in threads:
            if thread.ident is not None:
                thread.join(20)

    def _has_mirrors(self) -> bool:
        names = [self._mirror(each.topic) for each in self._workloads]

        async def exist(client: ClusterClient) -> bool:
            topics = (await client.metadata(names)).topics
            return all(not topics[name].error for name in names)

        try:
            return self._target.run(exist)
        except (WireError, OSError):
            return False

    # --- progress -------------------------------------------------------------------------------------------------

    @property
    def written(self) -> int:
        return sum(len(part.offsets) for writer in self.writers for part in writer.acknowledged)

    @property
    def arrived(self) -> int:
        return sum(len(seen.offsets) for seen in self.mirrored.partitions.values())

    def recovers(self, within: float, while_true: Callable[[], bool] = lambda: True) -> bool:
        """Waits until everything that the source has now is on the mirrors, and one more record of each partition."""
        marks = {key: len(seen.offsets) for key, seen in self.read.partitions.items() if key[0] in self._exact}
        return _until(
            lambda: all(len(self.mirrored.partitions[key].offsets) > mark for key, mark in marks.items()),
            within,
            while_true,
        )

    @property
    def _exact(self) -> set[str]:
        """Topics of which every record is copied."""
        return {each.topic for each in self._workloads if not each.is_compacted}

    # --- checkpoints ----------------------------------------------------------------------------------------------

    def checkpoint(self, name: str, patience: float) -> Findings:
        """Stops writing, waits until all is copied, and compares everything."""
        for writer in self.writers:
            writer.pause()
        self.groups.pause()
        try:
            if not _until(self._has_read_source, SETTLES_WITHIN):
                raise RuntimeError(f"the source cannot be read to its end: {self.read.failure}")
            is_settled = _until(self._is_copied, patience)
            if not is_settled:
                self.problems.append(f"{name}: not all is copied {patience:g} s after the last record was written")
            differing: list[str] = []
            if not _until(lambda: not self.groups.differing(), patience):
                differing = self.groups.differing()
            self.groups.check()
            found = self._compare(name)
            wrong = [*self.groups.mistranslated, *differing]
            self.problems += [f"{name}: {problem}" for problem in differing]
            self.findings = replace(found, mistranslated=len(wrong))
        finally:
            self.groups.resume()
            for writer in self.writers:
                writer.resume()
        return self.findings

    def _has_read_source(self) -> bool:
        partitions = list(self.read.partitions)

        async def ends(client: ClusterClient) -> dict[tuple[str, int], int | WireError]:
            topics = (await client.metadata({topic for topic, _partition in partitions})).topics
            return await list_offsets(client, topics, partitions, LATEST, True)

        try:
            found = self._source.run(ends)
        except (WireError, OSError):
            return False
        return all(isinstance(end, int) and self.read.position[key] >= end for key, end in found.items())

    def _is_copied(self) -> bool:
        for (topic, partition), seen in self.read.partitions.items():
            mirror = self.mirrored.partitions[topic, partition]
            if topic in self._exact:
                if len(mirror.offsets) < len(seen.offsets):
                    return False
            elif mirror.latest != seen.latest:
                return False
        return True

    def _compare(self, name: str) -> Findings:
        total = Findings()
        for writer in self.writers:
            for partition in range(writer.workload.partitions):
                found = self._compare_partition(writer, partition)
                if not found.is_clean:
                    self.problems.append(f"{name}: {writer.workload.topic}-{partition}: {found}")
                total += found
        return total

    def _compare_partition(self, writer: Writer, partition: int) -> Findings:
        key = writer.workload.topic, partition
        source, mirror = self.read.partitions[key], self.mirrored.partitions[key]
        if writer.workload.is_compacted:
            found = compare_latest(source.latest, mirror.latest, len(source.offsets))
            order = compare(source.digests, mirror.digests, is_complete=False)
            unknown = sum(record not in writer.sent for record in mirror.digests)
            return found + Findings(twice=order.twice, misordered=order.misordered, altered=unknown)
        acknowledged = writer.acknowledged[partition]
        places = dict(zip(source.offsets, source.digests, strict=True))
        missing = sum(
            places.get(offset) != record
            for offset, record in zip(acknowledged.offsets, acknowledged.digests, strict=True)
        )
        if missing:
            self.problems.append(f"{key[0]}-{partition}: the source itself has lost {missing} acknowledged records")
        return compare(source.digests, mirror.digests, is_complete=True)


def _until(condition: Callable[[], bool], within: float, while_true: Callable[[], bool] = lambda: True) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline or not while_true():
            return False
        time.sleep(_LOOKS_EVERY)
    return True
