"""Faults of topics: retention that overtakes; topics that are recreated; mirrors and internal topics, deleted."""

import random
import re
import time

from fault_runs.comparing import Findings, compare
from fault_runs.episodes import Episode, delete
from fault_runs.proxy import Rule
from fault_runs.scene import Applied, Fault, Scene
from heliograph.model.internal_topics import ledger_topic, signals_topic

_FEW, _MANY = 50, 200
_REPORTED_WITHIN = 30.0


def _begin(scene: Scene, rng: random.Random, kind: str) -> Episode:
    """A topic of which everything is copied."""
    episode = Episode(scene.source, scene.target, f"{kind}-{rng.randrange(1 << 32):08x}")
    episode.write(_MANY)
    if not episode.is_copied():
        raise RuntimeError(f"{episode.topic} is not copied, though there was no fault yet")
    return episode


def _retention(scene: Scene, rng: random.Random) -> Applied:
    """While Heliograph is cut off from the source, or while it copies."""
    episode = _begin(scene, rng, "retention")
    links = [scene.source.link(broker) for broker in scene.source.cluster.broker_ids]
    is_cut = rng.random() < 0.5
    if is_cut:
        for link in links:
            scene.source.links.set_rule(link, Rule(refuse=True))
    try:
        for _ in range(3):
            episode.write(_MANY)
            episode.delete_source_before(len(episode.written) - rng.randrange(1, _FEW))
    finally:
        for link in links:
            scene.source.links.set_rule(link, Rule())
    episode.write(_FEW)

    def verify() -> Findings:
        if not episode.is_copied():
            return Findings(lost=_FEW)
        mirror = episode.read_mirror()
        found = compare(episode.written, mirror, is_complete=True)
        deadline = time.monotonic() + _REPORTED_WITHIN
        while _reported_lost(scene, episode.topic) != found.lost and time.monotonic() < deadline:
            time.sleep(0.5)
        # What is reported, with its number, is not lost silently.
        return Findings(
            found.checked,
            abs(found.lost - _reported_lost(scene, episode.topic)),
            found.twice,
            found.misordered,
            found.altered,
        )

    return Applied(f"{episode.topic}, {'cut off meanwhile' if is_cut else 'while it is copied'}", verify=verify)


def _reported_lost(scene: Scene, topic: str) -> int:
    """How many records Heliograph's log says were deleted before they were copied."""
    text = scene.command.log.read_text(errors="replace")
    reports = re.findall(rf"{topic}-0 .*: (\d+) records from \d+ on were deleted before they were copied", text)
    return sum(map(int, reports))


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
