"""When a mirror refuses a batch for its size: raise the mirror's limit, or keep within it."""

from collections.abc import Callable, Sequence

from heliograph.copy.cursor import Cursor
from heliograph.model.batch_limits import LIMITS
from heliograph.model.partitions import Position
from heliograph.model.problems import Notice
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError, lacking
from heliograph.wire.topic_requests import change_configs, describe_configs

_NOTHING_IS_JOINED = 1  # byte


async def settle_limits(
    cursors: Sequence[Cursor], target: ClusterClient, may_raise: bool, notice: Callable[[Notice], None]
) -> None:
    """Raise or read the limits of mirrors that have refused a batch. Raises a WireError if that must be retried. Gives
    cursors up that need limits which may not be read."""
    unsettled = [cursor for cursor in cursors if not cursor.limits.is_settled]
    for mirror in {cursor.key.mirror for cursor in unsettled}:
        of_mirror = [cursor for cursor in unsettled if cursor.key.mirror == mirror]
        configs = (await describe_configs(target, [mirror]))[mirror]
        if isinstance(configs, BrokerError):
            if not configs.forbidden:
                raise configs
            for cursor in of_mirror:
                _settle_unknown(cursor, configs)
            continue
        limits = {name: int(configs[name].value or 0) for name in LIMITS}
        for cursor in of_mirror:
            if cursor.limits.has_refused_join:
                cursor.limits.settle_join_size(min(limits.values()))
        concerned = [cursor for cursor in of_mirror if cursor.limits.refused_batch_bytes]
        needed = max((cursor.limits.refused_batch_bytes for cursor in concerned), default=0)
        low = {name: str(_next_power(needed)) for name, value in limits.items() if value < needed}
        why_not = await _raise_limits(target, mirror, low) if may_raise and low else ""
        raised = may_raise and bool(low) and not why_not
        for cursor in concerned:
            at = cursor.position
            if raised:
                cursor.limits.settle_batch_size(0)
                settings = " and ".join(f"{name}={value}" for name, value in low.items())
                text = f"a batch of {needed} bytes needed {settings} on the mirror"
                if at is not None:
                    notice(Notice(cursor.key, "limit-raised", 0, at.source, at.target, text))
            else:
                cursor.limits.settle_batch_size(min(limits.values()), why_not)


def _settle_unknown(cursor: Cursor, error: BrokerError) -> None:
    """Where limits cannot be read, single batches may still be within them."""
    if not cursor.limits.refused_batch_bytes:
        cursor.limits.settle_join_size(_NOTHING_IS_JOINED)
        return
    size, at = cursor.limits.refused_batch_bytes, cursor.position or Position(-1, -1)
    right = lacking(error.code, "DescribeConfigs")
    text = f"the mirror refuses a batch of {size} bytes, and its limits cannot be read: {error}{right}"
    cursor.give_up("too-large", text, at.source, at.target)


async def _raise_limits(target: ClusterClient, mirror: str, values: dict[str, str]) -> str:
    """Returns why they are not raised; empty if they are."""
    try:
        error = (await change_configs(target, {mirror: values}))[mirror]
    except BrokerError as refused:
        error = refused
    if error is None:
        return ""
    return f"{' and '.join(values)} of the mirror cannot be raised: {error}{lacking(error.code, 'AlterConfigs')}"


def _next_power(size: int) -> int:
    return 1 << (size - 1).bit_length()
