"""The connectors that are wanted, and their changes: what Connect's REST API works on.

A connector is a flat config and the state it is to have. Connectors of a file live as long as the process; others are
stored in Kafka before they take effect.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from heliograph.config import Deployment
from heliograph.config.declare.kinds import split_list
from heliograph.config.declare.supported import CONFIG_ACTION_RELOAD, NONE, RESTART, TOPICS_PAUSED
from heliograph.config.read.providers import references
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.posted_limits import refusals
from heliograph.config.show.projection import connectors as projected
from heliograph.control.connect_store import ConnectStore
from heliograph.model.connect_records import RUNNING, Stored
from heliograph.model.flow import SOURCE, ConnectOffsets, Flow
from heliograph.service.connector_checks import Invalid as Invalid
from heliograph.service.connector_checks import checked_config
from heliograph.service.connector_checks import invalid as invalid
from heliograph.service.connector_flows import FlowBuilder, WantedConnector, cluster_pair
from heliograph.service.connector_view import ConnectorView
from heliograph.service.connector_view import NotFound as NotFound
from heliograph.service.connector_view import Worker as Worker
from heliograph.service.supervisor import Supervisor

log = logging.getLogger(__name__)


class AlreadyExists(Exception):
    """There is a connector of this name."""


class Connectors(ConnectorView):
    """`allowed` is what a posted config may contain besides plain settings."""

    def __init__(
        self,
        supervisor: Supervisor,
        worker: Worker,
        store: ConnectStore | None = None,
        allowed: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(supervisor, worker)
        self._store = store
        self._allowed = allowed
        offsets = ConnectOffsets(worker.offsets_topic, group=worker.group) if worker.offsets_topic else None
        self._builder = FlowBuilder(worker.settings, offsets)
        self._file_states: dict[str, str] = {}
        self.changing = asyncio.Lock()

    # --- where they come from -------------------------------------------------------------------------------

    def restore(self, stored: Stored) -> None:
        """The connectors that Kafka stores."""
        self._wanted = {
            name: WantedConnector(config, stored.states.get(name, RUNNING)) for name, config in stored.configs.items()
        }
        self._apply()
        for name, reason in self._made.unfit.items():
            log.error("connector %s does not run: %s", name, reason)

    def adopt(self, document: Settings, deployment: Deployment) -> None:
        """The connectors of a file replace all others. A state that was set by a request stays, unless the file has
        another one than before."""
        before, states_before = self._wanted, self._file_states
        self._wanted, self._file_states = {}, {}
        for connector in projected(document, deployment.all_flows):
            state = self._file_states[connector.name] = connector.state
            if connector.name in before and states_before.get(connector.name) == state:
                state = before[connector.name].state
            config = {"name": connector.name} | connector.whole_config()
            self._wanted[connector.name] = WantedConnector(config, state, is_projection=True)
        self._builder.use_file(deployment.all_flows)
        self._apply(deployment.flows_elsewhere)

    def use_flows(self, deployment: Deployment) -> None:
        """The connectors stay as they are, but references of their file have other values now."""
        self._builder.use_file(deployment.all_flows)
        self._apply()

    async def refresh(self) -> None:
        """Takes over what references of the connectors refer to now. What cannot be read at the moment changes
        nothing."""
        async with self.changing:
            if not any(references(value) for wanted in self._wanted.values() for value in wanted.config.values()):
                return
            made = await asyncio.to_thread(self._builder.build, dict(self._wanted))
            for name in made.unfit.keys() - self._made.unfit.keys():
                log.error("connector %s runs on with the secrets that it has: %s", name, made.unfit[name])
                return
            kept = {flow.name: flow for flow in self._made.flows if not self._reloads(flow.name)}
            made.flows = [kept.get(flow.name, flow) for flow in made.flows]
            if made.flows != self._made.flows:
                log.info("a secret has changed: reloading the flows that use it")
            self._made = made
            self._supervisor.apply(made.flows)

    def _reloads(self, flow: str) -> bool:
        """Unless one of its connectors has `config.action.reload = none`."""
        configs = (self._wanted[name].config for name in self.of_flow(flow))
        return all(config.get(CONFIG_ACTION_RELOAD.name, RESTART).strip() != NONE for config in configs)

    # --- changes --------------------------------------------------------------------------------------------

    async def create(self, name: str, config: Mapping[str, str], state: str = RUNNING) -> None:
        async with self.changing:
            checked = self._checked(name, config)
            if name in self._wanted:
                raise AlreadyExists(f"Connector {name} already exists")
            await self._store_and_apply(name, WantedConnector(checked, state), is_new=True)

    async def put(self, name: str, config: Mapping[str, str]) -> bool:
        """Whether it is a new one."""
        async with self.changing:
            return await self._put(name, config)

    async def patch(self, name: str, changes: Mapping[str, str | None]) -> None:
        """A setting without a value is removed."""
        async with self.changing:
            config = {**self.wanted(name).config, **changes}
            await self._put(name, {key: value for key, value in config.items() if value is not None})

    async def _put(self, name: str, config: Mapping[str, str]) -> bool:
        checked = self._checked(name, config)
        is_new = name not in self._wanted
        await self._store_and_apply(name, self._with_config(name, checked), is_new=is_new)
        return is_new

    def _with_config(self, name: str, config: Mapping[str, str]) -> WantedConnector:
        return self._wanted[name].with_config(config) if name in self._wanted else WantedConnector(config)

    async def delete(self, name: str) -> None:
        async with self.changing:
            self.wanted(name)
            if self._store is not None:
                await self._store.delete(name)
            del self._wanted[name]
            log.info("connector %s is deleted; its mirrors stay", name)
            self._apply()

    async def set_state(self, name: str, state: str) -> None:
        if name not in self._wanted:
            raise NotFound(f"Unknown connector {name}")
        async with self.changing:
            before = self.wanted(name)
            if self._store is not None:
                await self._store.put_state(name, state)
            if before.state != state:
                log.info("connector %s is set to %s", name, state)
            self._wanted[name] = replace(before, state=state)
            self._apply()

    async def pause_topics(self, flow: str, topics: Iterable[str], paused: bool) -> list[str]:
        """Pauses or resumes single topics of a flow. Returns all that are paused then."""
        name = next((name for name in self.of_flow(flow) if self.part(name) == SOURCE), None)
        if name is None:
            raise Invalid(f"{flow} has no source connector: nothing of it is copied")
        async with self.changing:
            config = self.wanted(name).config
            now = set(split_list(config.get(TOPICS_PAUSED.name, ""))) - {""}
            now = now | set(topics) if paused else now - set(topics)
            await self._put(name, {**config, TOPICS_PAUSED.name: ",".join(sorted(now))})
        return sorted(now)

    def restart(self, name: str, itself: bool, tasks: Collection[int]) -> None:
        """`itself`: the connector prepares everything again. `tasks`: those that start again."""
        supervisor = self.deployed_of(name)
        if supervisor is not None:
            is_source = self.part(name) == SOURCE
            supervisor.restart(itself or (bool(tasks) and not is_source), tasks if is_source else ())

    async def _store_and_apply(self, name: str, wanted: WantedConnector, *, is_new: bool) -> None:
        if self._store is not None:
            if is_new and wanted.state != RUNNING:
                await self._store.put_state(name, wanted.state)
            await self._store.put_config(name, wanted.config)
        elif self._builder.has_file:
            log.info("connector %s is changed until this process ends: the file still says otherwise", name)
        self._wanted[name] = wanted
        self._apply()

    def _checked(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        """The whole config, if the connector can run together with the others. Raises Invalid."""

        def build(config: Mapping[str, str]) -> None:
            pair = cluster_pair(name, config)
            others = [known for known in self._names_of(pair) if known != name and not self.unfit(known)]
            members = {known: self._wanted[known] for known in others}
            self._builder.flow(pair, {**members, name: self._with_config(name, config)})

        if not_allowed := self.refusals(name, given):
            raise invalid([f"{setting}: {reason}" for setting, reason in not_allowed.items()])
        return checked_config(name, given, self._config_until_now(name), build)

    def refusals(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        """The settings that a posted config of this name may not contain, with the reasons."""
        return refusals(given, self._config_until_now(name), self._allowed, self.worker.settings)

    def _config_until_now(self, name: str) -> Mapping[str, str]:
        return self._wanted[name].config if name in self._wanted else {}

    def _apply(self, elsewhere: Sequence[Flow] | None = None) -> None:
        """The one place that decides what runs; `elsewhere`: the flows of other processes, if they have changed."""
        self._made = self._builder.build(self._wanted)
        self._supervisor.apply(self._made.flows, elsewhere)
