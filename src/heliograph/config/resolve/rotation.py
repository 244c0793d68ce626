"""Whether the values that references of a file refer to have changed since they were read."""

import hashlib
from dataclasses import replace

from heliograph.config.declare import supported
from heliograph.config.declare.locations import Scope
from heliograph.config.read.providers import declared_providers, references, resolve
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.deployment import Deployment
from heliograph.model.flow import Flow


def read_again(settings: Settings) -> Settings:
    """The same settings, whose references are looked up again."""
    top = (entry for key, entry in settings.entries.items() if key.scope is Scope.TOP)
    return replace(settings, providers=declared_providers(settings.file, top))


def digest(settings: Settings) -> bytes:
    """Of all values that references have now. Equal values have equal digests."""
    found = hashlib.sha256()
    for key, entry in settings.entries.items():
        if references(entry.reveal()):
            text = f"{key.key()}\0{resolve(entry.reveal(), settings.providers, keep_failing=True)}\0"
            found.update(text.encode("utf-8", "surrogatepass"))
    return found.digest()


def with_unreloaded(settings: Settings, before: Deployment, changed: Deployment) -> Deployment:
    """The changed deployment, but with the flows before for which `config.action.reload` is `none`."""
    kept = {flow.name: flow for flow in before.all_flows if not _reloads(settings, flow)}
    return replace(
        changed,
        flows=tuple(kept.get(flow.name, flow) for flow in changed.flows),
        heartbeat_only_flows=tuple(kept.get(flow.name, flow) for flow in changed.heartbeat_only_flows),
    )


def _reloads(settings: Settings, flow: Flow) -> bool:
    pair = (flow.source.alias, flow.target.alias)
    return settings.get(supported.CONFIG_ACTION_RELOAD, *pair) == supported.RESTART
