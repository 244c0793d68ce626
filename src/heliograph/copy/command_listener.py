"""Listens for the driver's commands to one lease: more time, other partitions, log levels, or its end.

`copy/signals` has the kinds of commands, `copy/copier` carries them out.
"""

import asyncio
import logging
from collections.abc import Callable

from heliograph.copy.signals import Command, command_for
from heliograph.copy.work import Work
from heliograph.model.internal_topics import COMMANDS, signals_topic
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.following import Follower

log = logging.getLogger(__name__)

_RETRY_AFTER = 1.0


async def listen(work: Work, target: ClusterClient, handle: Callable[[Command], None]) -> None:
    """Hand each command for this lease to `handle`. Never returns."""
    flow = work.flow.name

    def missed(why: str) -> None:
        what = "commands to it may be lost, and unless it is given more time it ends at its deadline"
        log.warning("%s: lease %s: %s; %s", flow, work.lease, why, what)

    follower = Follower(target, signals_topic(work.flow.source.alias), COMMANDS, work.commands_from, missed)
    while True:
        try:
            async for records in follower.records():
                for record in records:
                    command = command_for(work.lease, record.key, record.value, work.epoch)
                    if command is not None:
                        handle(command)
        except WireError as error:
            log.debug("%s: commands cannot be read: %s", flow, error)
        await asyncio.sleep(_RETRY_AFTER)
