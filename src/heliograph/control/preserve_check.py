"""Checks before anything is copied that the target allows what heliograph.offsets = preserve needs."""

from collections.abc import Collection

from heliograph.copy.gap_filler import TIMEOUT, transactional_id_prefix
from heliograph.model.flow import Flow
from heliograph.wire.acl_requests import DELETE, may_do
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import COORDINATOR_MOVES, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, BrokerError
from heliograph.wire.transactions import TransactionalId


class CannotKeepOffsets(Exception):
    """The target does not allow what preserved offsets need; the message says how to allow it."""


async def check(flow: Flow, target: ClusterClient, mirrors: Collection[str]) -> None:
    """Raises CannotKeepOffsets with all that is missing."""
    problems = [problem for problem in (await _transactions(flow, target), await _deletion(target, mirrors)) if problem]
    if problems:
        raise CannotKeepOffsets(f"{flow.name}: heliograph.offsets = preserve is not possible: {'; '.join(problems)}")


async def _transactions(flow: Flow, target: ClusterClient) -> str | None:
    name, alias = transactional_id_prefix(flow.name), target.cluster.alias
    try:
        await TransactionalId(target, f"{name}check", TIMEOUT).init_producer()
    except BrokerError as error:
        if error.code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return (
                f"transactions are not allowed on {alias} ({error.name}); allow them: kafka-acls.sh --add --operation "
                f"Write --operation Describe --transactional-id '{name}' --resource-pattern-type prefixed"
            )
        if error.code in COORDINATOR_MOVES:
            return (
                f"{alias} has no coordinator for transactions ({error.name}): its topic __transaction_state cannot be "
                "created or read; are there as many brokers as transaction.state.log.replication.factor asks for?"
            )
        return f"transactions do not work on {alias}: {error}"
    return None


async def _deletion(target: ClusterClient, mirrors: Collection[str]) -> str | None:
    refused = [name for name, allowed in (await may_do(target, DELETE, mirrors)).items() if allowed is False]
    if not refused:
        return None
    named = ", ".join(sorted(refused)[:5]) + (f" and {len(refused) - 5} more" if len(refused) > 5 else "")
    return (
        f"records of {named} may not be deleted on {target.cluster.alias}, so that mirrors cannot begin where their "
        "sources begin; allow it: kafka-acls.sh --add --operation Delete --topic <mirror>"
    )
