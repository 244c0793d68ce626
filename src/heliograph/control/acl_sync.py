"""The access rules syncer: who may do what with a source topic may do the same with its mirror, but for writing.

MM2's rules: only rules about one topic by its full name; what allows writing is left out, and what allows everything
allows reading; denials stay as they are. Nothing is ever taken away on the target.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from heliograph.model.flow import Flow
from heliograph.wire.acl_requests import ALL, ALLOW, LITERAL, READ, WRITE, Acl, create_acls, topic_acls
from heliograph.wire.cluster import ClusterClient

log = logging.getLogger(__name__)

ANY_NAME = "*"


@dataclass(frozen=True, slots=True)
class MirrorAcls:
    """The rules for mirrors, and how many were left out for which reason."""

    wanted: frozenset[Acl]
    skipped: Counter[str]


def mirror_acls(acls: Iterable[Acl], selects: Callable[[str], bool], mirror_name: Callable[[str], str]) -> MirrorAcls:
    wanted, skipped = set(), Counter[str]()
    for one in acls:
        if one.pattern != LITERAL:
            skipped["about a prefix of names, which mirrors do not have"] += 1
        elif one.permission == ALLOW and one.operation == WRITE:
            skipped["allows writing, which only the mirror's copier may"] += 1
        elif not selects(one.name):
            skipped["about a topic that is not mirrored"] += 1
        elif one.name == ANY_NAME and mirror_name(one.name) != ANY_NAME:
            skipped["about all topics, which has no meaning with a prefix"] += 1
        else:
            operation = READ if (one.permission, one.operation) == (ALLOW, ALL) else one.operation
            wanted.add(replace(one, name=mirror_name(one.name), operation=operation))
    return MirrorAcls(frozenset(wanted), skipped)


@dataclass(slots=True)
class AclSync:
    """Remembers what it has said, to say it once."""

    flow: Flow
    _told: str = ""
    refused: dict[Acl, str] = field(default_factory=dict)  # by the target, the last time

    async def missing(self, source: ClusterClient, target: ClusterClient) -> list[Acl]:
        """What the target lacks, with a request to each side; and a word about what is left out."""
        acls = await topic_acls(source)
        if acls is None:
            self._tell("the source checks no access: set sync.topic.acls.enabled = false to not even look")
            return []
        found = mirror_acls(acls, self.flow.selects, self.flow.mirror_name)
        there = await topic_acls(target) if found.wanted else set()
        if there is None:
            self._tell(f"the target checks no access: {len(found.wanted)} rules of the source are not carried over")
            return []
        if found.skipped:
            why = "; ".join(f"{count} {reason}" for reason, count in sorted(found.skipped.items()))
            self._tell(f"{found.skipped.total()} access rules are not carried over: {why}")
        return sorted(found.wanted - there)

    async def run(self, source: ClusterClient, target: ClusterClient) -> None:
        """One request more if there are rules missing."""
        missing = await self.missing(source, target)
        outcomes = await create_acls(target, missing)
        refused = {acl: str(error) for acl, error in zip(missing, outcomes, strict=True) if error is not None}
        for acl, error in refused.items():
            if self.refused.get(acl) != error:
                log.warning("%s: rule %s could not be created: %s", self.flow.name, acl, error)
        self.refused = refused
        created = outcomes.count(None)
        if created:
            log.info("%s: %d access rules created on the target", self.flow.name, created)

    def _tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            log.info("%s: %s", self.flow.name, text)
