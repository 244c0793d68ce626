"""Syncing topic ACLs: who may do what with a source topic may do the same with its mirror, except writing.

As MM2 does: only ACLs with literal topic names; ALLOW WRITE is left out, ALLOW ALL becomes ALLOW READ, DENY stays as it
is. No ACL is ever deleted on the target.
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
    """The ACLs for mirrors, and how many were left out for which reason."""

    wanted: frozenset[Acl]
    skipped: Counter[str]


def mirror_acls(acls: Iterable[Acl], selects: Callable[[str], bool], mirror_name: Callable[[str], str]) -> MirrorAcls:
    wanted, skipped = set(), Counter[str]()
    for acl in acls:
        if acl.pattern != LITERAL:
            skipped["about a prefix of names, which mirrors do not have"] += 1
        elif acl.permission == ALLOW and acl.operation == WRITE:
            skipped["allows writing, which only the mirror's copier may"] += 1
        elif not selects(acl.name):
            skipped["about a topic that is not mirrored"] += 1
        elif acl.name == ANY_NAME and mirror_name(acl.name) != ANY_NAME:
            skipped["about all topics, which has no meaning with a prefix"] += 1
        else:
            operation = READ if (acl.permission, acl.operation) == (ALLOW, ALL) else acl.operation
            wanted.add(replace(acl, name=mirror_name(acl.name), operation=operation))
    return MirrorAcls(frozenset(wanted), skipped)


@dataclass(slots=True)
class AclSync:
    """Remembers what it has logged, to log it once."""

    flow: Flow
    _logged: str = ""
    refused: dict[Acl, str] = field(default_factory=dict)  # by the target, the last time

    async def missing(self, source: ClusterClient, target: ClusterClient) -> list[Acl]:
        """The ACLs that the target lacks, with one request to each cluster. Logs what is left out."""
        acls = await topic_acls(source)
        if acls is None:
            self._log_once("the source has no authorizer: set sync.topic.acls.enabled = false to stop asking")
            return []
        translated = mirror_acls(acls, self.flow.selects, self.flow.mirror_name)
        existing = await topic_acls(target) if translated.wanted else set()
        if existing is None:
            self._log_once(f"the target has no authorizer: {len(translated.wanted)} ACLs of the source are not synced")
            return []
        if translated.skipped:
            why = "; ".join(f"{count} {reason}" for reason, count in sorted(translated.skipped.items()))
            self._log_once(f"{translated.skipped.total()} ACLs are not synced: {why}")
        return sorted(translated.wanted - existing)

    async def run(self, source: ClusterClient, target: ClusterClient) -> None:
        """One more request if ACLs are missing."""
        missing = await self.missing(source, target)
        outcomes = await create_acls(target, missing)
        refused = {acl: str(error) for acl, error in zip(missing, outcomes, strict=True) if error is not None}
        by_error: dict[str, list[Acl]] = {}
        for acl, error in refused.items():
            if self.refused.get(acl) != error:
                by_error.setdefault(error, []).append(acl)
        for error, acls in by_error.items():
            more = f" (nor {len(acls) - 1} more)" if len(acls) > 1 else ""
            log.warning("%s: rule %s could not be created: %s%s", self.flow.name, acls[0], error, more)
        self.refused = refused
        created = outcomes.count(None)
        if created:
            log.info("%s: %d ACLs created on the target", self.flow.name, created)

    def _log_once(self, text: str) -> None:
        if text != self._logged:
            self._logged = text
            log.info("%s: %s", self.flow.name, text)
