"""Faults of topics: retention that overtakes; topics that are recreated; mirrors and internal topics, deleted."""

import random
import re
import time
from pathlib import Path

from fault_runs.comparing import Findings, compare
from fault_runs.episodes import Episode, delete
from fault_runs.process_faults import start_second
from fault_runs.proxy import Rule
from fault_runs.scene import Applied, Fault, Scene
from heliograph.model.internal_topics import ledger_topic, signals_topic

_FEW, _MANY = 50, 200
_ROUNDS = 6
_REPORTED_WITHIN = 30.0


def _begin(scene: Scene, rng: random.Random, kind: str) -> Episode:
    """A topic of which everything is copied."""
    episode = Episode(scene.source, scene.target, f"{kind}-{rng.randrange(1 << 32):08x}", scene.patience)
    episode.write(_MANY)
    if not episode.is_copied():
        raise RuntimeError(f"{episode.topic} is not copied, though there was no fault yet")
    return episode


def _retention(scene: Scene, rng: random.Random) -> Applied:
    """While Heliograph is cut off from the source, or while it copies."""
    episode = _begin(scene, rng, "retention")
    is_cut = rng.random() < 0.5
    _cut_off(scene, is_cut)
    try:
        for _ in range(3):
            episode.write(_MANY)
            episode.delete_source_before(len(episode.written) - rng.randrange(1, _FEW))
    finally:
        _cut_off(scene, False)
    episode.write(_FEW)
    to = f"{episode.topic}, {'cut off meanwhile' if is_cut else 'while it is copied'}"
    return Applied(to, verify=lambda: _not_lost_silently(episode, [scene.command.log]))


def _retention_with_two(scene: Scene, rng: random.Random) -> Applied:
    """Both find that records are missing at about the same time, and see the source begin at different offsets."""
    episode = _begin(scene, rng, "retention")
    second, stop = start_second(scene)
    try:
        for _ in range(_ROUNDS):
            _cut_off(scene, True)
            first = len(episode.written)
            episode.write(_MANY)
            episode.delete_source_before(first + rng.randrange(1, _FEW))
            _cut_off(scene, False)
            episode.delete_source_slowly(first + _FEW, first + _MANY - _FEW, 0.01)
    except BaseException:
        stop()
        raise
    finally:
        _cut_off(scene, False)
    episode.write(_FEW)
    return Applied(episode.topic, stop, lambda: _not_lost_silently(episode, [scene.command.log, second.log]))


def _cut_off(scene: Scene, is_cut: bool) -> None:
    for broker in scene.source.cluster.broker_ids:
        scene.source.links.set_rule(scene.source.link(broker), Rule(refuse=is_cut))


def _not_lost_silently(episode: Episode, logs: list[Path]) -> Findings:
    """Records that are missing were deleted on the source, and a log says so, with their offsets. With one process, it
    says so of no others."""
    if not episode.is_copied():
        return Findings(lost=_FEW)
    mirror = episode.read_mirror()
    found = compare(episode.written, mirror, is_complete=True)
    arrived = set(mirror)
    missing = {offset for offset, record in enumerate(episode.written) if record not in arrived}
    deadline = time.monotonic() + _REPORTED_WITHIN
    while (silent := _silent(missing, _reported(logs, episode.topic), len(logs))) and time.monotonic() < deadline:
        time.sleep(0.5)
    return Findings(found.checked, silent, found.twice, found.misordered, found.altered)


def _silent(missing: set[int], reported: list[int], processes: int) -> int:
    """How many are missing and not reported, or reported without need."""
    silent = len(missing - set(reported))
    return silent if processes > 1 else silent + abs(len(reported) - len(missing))


def _reported(logs: list[Path], topic: str) -> list[int]:
    """Offsets that were deleted before they were copied, as Heliograph has logged them."""
    pattern = re.compile(rf"{topic}-0 .*: (\d+) records from (\d+) on were deleted before they were copied")
    reports = [match for log in logs for match in pattern.findall(log.read_text(errors="replace"))]
    return [int(first) + number for count, first in reports for number in range(int(count))]


def _recreate_topic(scene: Scene, rng: random.Random) -> Applied:
    episode = _begin(scene, rng, "recreated")
    delete(scene.source, episode.topic)
    episode.create()
    episode.write(rng.choice((_FEW, 2 * _MANY)))
    return Applied(episode.topic, verify=lambda: _same(episode))


def _delete_mirror(scene: Scene, rng: random.Random) -> Applied:
    """If a batch was on its way, it may be in the new mirror: then Heliograph asks to delete it once more."""
    episode = _begin(scene, rng, "mirror")
    delete(scene.target, episode.mirror)
    episode.write(_FEW)

    def verify() -> Findings:
        if not episode.is_copied() and f"{episode.mirror} once more" in scene.command.log.read_text(errors="replace"):
            delete(scene.target, episode.mirror)
        return _same(episode)

    return Applied(episode.mirror, verify=verify)


def _same(episode: Episode) -> Findings:
    episode.is_copied()
    return compare(episode.written, episode.read_mirror(), is_complete=True)


def _delete_internal(scene: Scene, topic: str) -> Applied:
    delete(scene.target, topic)
    return Applied(topic)


def topic_faults() -> list[Fault]:
    return [
        Fault(
            "retention", "the source deletes records before all are copied: exactly those must be reported", _retention
        ),
        Fault(
            "retention-with-two",
            "the same, with a second deployment that finds it at the same time",
            _retention_with_two,
        ),
        Fault("recreate-topic", "a source topic is deleted and created again: the mirror has both", _recreate_topic),
        Fault("delete-mirror", "a mirror is deleted: it is created and copied again", _delete_mirror),
        Fault(
            "delete-ledger",
            "the ledger's topic is deleted while Heliograph runs",
            lambda scene, _rng: _delete_internal(scene, ledger_topic(scene.source.alias)),
        ),
        Fault(
            "delete-signals",
            "the topic of commands and reports is deleted while Heliograph runs",
            lambda scene, _rng: _delete_internal(scene, signals_topic(scene.source.alias)),
        ),
    ]
