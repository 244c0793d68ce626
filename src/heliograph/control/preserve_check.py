"""Checks before a mirror is copied that the target allows what heliograph.offsets = preserve needs."""

from collections.abc import Collection

from heliograph.copy.gap_filler import TIMEOUT, transactional_id_prefix
from heliograph.model.flow import Flow
from heliograph.wire.acl_requests import DELETE, may_do
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import COORDINATOR_MOVES, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, BrokerError
from heliograph.wire.transactions import TransactionalId

_NOT_POSSIBLE = "heliograph.offsets = preserve is not possible"


async def why_not_preserved(flow: Flow, target: ClusterClient, mirrors: Collection[str]) -> dict[str, str]:
    """Mirrors that cannot preserve offsets, with the reason and how to allow it. `target` is the client of leases."""
    if not mirrors:
        return {}
    if problem := await _transactions(flow, target):
        return dict.fromkeys(mirrors, f"{_NOT_POSSIBLE}: {problem}")
    alias = target.cluster.alias
    return {
        mirror: f"{_NOT_POSSIBLE}: records of {mirror} may not be deleted on {alias}, so that it cannot begin where "
        f"its source begins; allow it: kafka-acls.sh --add --operation Delete --topic {mirror}"
        for mirror, allowed in (await may_do(target, DELETE, mirrors)).items()
        if allowed is False
    }


async def _transactions(flow: Flow, target: ClusterClient) -> str | None:
    name, alias = transactional_id_prefix(flow.name), target.cluster.alias
    try:
        await TransactionalId(target, f"{name}check", TIMEOUT).init_producer()
    except BrokerError as error:
        if error.code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return (
                f"transactions are not allowed on {alias} ({error.name}); allow them: kafka-acls.sh --add --operation "
                f"Write --transactional-id '{name}' --resource-pattern-type prefixed"
            )
        if error.code in COORDINATOR_MOVES:
            return (
                f"{alias} has no coordinator for transactions ({error.name}): its topic __transaction_state cannot be "
                "created or read; are there as many brokers as transaction.state.log.replication.factor asks for?"
            )
        return f"transactions do not work on {alias}: {error}"
    return None
