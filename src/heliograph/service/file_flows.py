"""The flows of a deployment's files: reads the files again on SIGHUP, and follows secrets that are rotated."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from heliograph.config import ConfigError, Deployment
from heliograph.config.declare.supported import SECRETS_REFRESH
from heliograph.config.read.formats import read_all
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.deployment import assemble
from heliograph.config.resolve.rotation import digest, read_again, with_unreloaded
from heliograph.config.resolve.targets import into
from heliograph.model.flow import SOURCE
from heliograph.service.connectors import Connectors
from heliograph.service.members import Members

log = logging.getLogger(__name__)


async def keep_refreshing(every: float, refresh: Callable[[], Awaitable[None]]) -> None:
    """Until cancelled; returns at once if `every` is 0."""
    while every:
        await asyncio.sleep(every)
        try:
            await refresh()
        except Exception:
            log.exception("secrets could not be read again; the next attempt is in %g s", every)


def flow_names(deployment: Deployment) -> str:
    """Of the flows that copy records."""
    names = [flow.name for flow in deployment.running_flows if SOURCE in flow.parts]
    return ", ".join(names) or "nothing: no source connector is to run"


class FileFlows:
    def __init__(
        self,
        files: Sequence[Path],
        document: Settings,
        deployment: Deployment,
        connectors: Connectors,
        targets: Sequence[str] = (),
        members: Members | None = None,
    ) -> None:
        """`targets`: only flows into these clusters run; all if there are none. `members` share them."""
        self._files = files
        self._connectors = connectors
        self._targets = targets
        self._members = members
        self._keep(document, deployment, digest(document))
        connectors.adopt(document, deployment)

    @property
    def refresh_seconds(self) -> float:
        return self._document.get(SECRETS_REFRESH, "", "")

    def reload(self) -> None:
        """On SIGHUP. A file with errors changes nothing."""
        try:
            document = read_all(self._files)
            values = digest(document)  # before they are used: what changes in between is noticed later
            deployment = into(assemble(document), self._targets)
        except ConfigError as error:
            log.error("%s; the flows run on unchanged", error)
            return
        for warning in deployment.warnings:
            log.warning("%s", warning)
        log.info("%s reloaded: mirroring %s", deployment.file, flow_names(deployment))
        self._keep(document, deployment, values)
        self._connectors.adopt(document, deployment)
        if self._members is not None:
            self._members.use(deployment.all_flows, deployment.membership)

    async def refresh(self) -> None:
        """Takes rotated secrets over. What cannot be read at the moment changes nothing."""
        before = self._document
        try:
            document, values = await asyncio.to_thread(_looked_up_again, before)
            if values == self._values or before is not self._document:  # the file may have been reloaded meanwhile
                return
            assembled = into(await asyncio.to_thread(assemble, document), self._targets)
            deployment = with_unreloaded(document, self._deployment, assembled)
        except ConfigError as error:
            log.error("%s; the flows run on with the secrets that they have", error)
            return
        if before is self._document:
            log.info("%s: a secret has changed: reloading the flows that use it", document.file)
            self._keep(document, deployment, values)
            self._connectors.use_flows(deployment)
            if self._members is not None:
                self._members.use(deployment.all_flows, deployment.membership)

    def _keep(self, document: Settings, deployment: Deployment, values: bytes) -> None:
        self._document, self._deployment, self._values = document, deployment, values


def _looked_up_again(document: Settings) -> tuple[Settings, bytes]:
    again = read_again(document)
    return again, digest(again)
