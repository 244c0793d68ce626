"""The connectors that are wanted, and the one place where they become flows: what Connect's REST API works on.

A connector is a flat config and the state it is to have. Those of one pair of clusters make one flow. Where they come
from a file they live as long as the process; otherwise they are kept in Kafka, before they take effect.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from heliograph.config import ConfigError, Deployment
from heliograph.config.document import Document
from heliograph.config.export import connectors as exported
from heliograph.config.kinds import split_list
from heliograph.config.mirroring import TOPICS_PAUSED
from heliograph.config.plugin_config import problems
from heliograph.config.posted import Made, connector, flow_of, part_of, shown, with_secrets
from heliograph.control.connect_store import ConnectStore
from heliograph.model.connect_records import RUNNING, Stored
from heliograph.model.flow import SOURCE, ConnectOffsets, Flow
from heliograph.service.flow_supervisor import FlowSupervisor
from heliograph.service.supervisor import Supervisor

log = logging.getLogger(__name__)

Pair = tuple[str, str]


class NotFound(Exception):
    """There is no such connector, task or flow."""


class AlreadyExists(Exception):
    """There is a connector of this name."""


class Invalid(Exception):
    """What was asked for cannot be done, in words for who asked."""


@dataclass(frozen=True, slots=True)
class Wanted:
    config: Mapping[str, str]
    state: str = RUNNING


@dataclass(frozen=True, slots=True)
class Worker:
    """What a connector finds around it: what the process calls itself, and the settings of its file."""

    id: str
    settings: Mapping[str, str] = field(default_factory=dict)
    offsets_topic: str = ""
    group: str = ""


class Connectors:
    def __init__(self, running: Supervisor, worker: Worker, store: ConnectStore | None = None) -> None:
        self._running = running
        self.worker = worker
        self._store = store
        self._wanted: dict[str, Wanted] = {}
        self._unfit: dict[str, str] = {}  # name -> why it makes no flow
        self._idle: set[str] = set()  # those that have nothing to do by their own settings
        self._from_file: dict[Pair, tuple[Mapping[str, Mapping[str, str]], Flow]] = {}
        self._remarked: set[str] = set()
        self._changing = asyncio.Lock()

    # --- where they come from -------------------------------------------------------------------------------

    def restore(self, stored: Stored) -> None:
        """What Kafka has kept."""
        states = stored.states
        self._wanted = {name: Wanted(config, states.get(name, RUNNING)) for name, config in stored.configs.items()}
        self._apply()
        for name, why in self._unfit.items():
            log.error("connector %s does not run: %s", name, why)

    def adopt(self, document: Document, deployment: Deployment) -> None:
        """What a file says, in place of all there was. What is paused stays paused."""
        before = self._wanted
        self._wanted, self._from_file = {}, {}
        flows = {(one.source.alias, one.target.alias): one for one in (*deployment.flows, *deployment.beats)}
        configs: dict[Pair, dict[str, Mapping[str, str]]] = {}
        for one in exported(document, flows.values()):
            name = document.names.get((one.source, one.target, one.part), one.name)
            config = {"name": name} | one.whole_config()
            configs.setdefault((one.source, one.target), {})[name] = config
            state = before[name].state if name in before else RUNNING
            self._wanted[name] = Wanted(config, state)
        self._from_file = {pair: (configs[pair], flow) for pair, flow in flows.items() if pair in configs}
        self._apply()

    # --- what is wanted -------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        return sorted(self._wanted)

    def wanted(self, name: str) -> Wanted:
        if name not in self._wanted:
            raise NotFound(f"Connector {name} not found")
        return self._wanted[name]

    def config(self, name: str) -> dict[str, str]:
        """Without secrets."""
        return shown(self.wanted(name).config)

    async def create(self, name: str, config: Mapping[str, str], state: str = RUNNING) -> None:
        async with self._changing:
            checked = self._checked(name, config)
            if name in self._wanted:
                raise AlreadyExists(f"Connector {name} already exists")
            await self._keep(name, Wanted(checked, state), new=True)

    async def put(self, name: str, config: Mapping[str, str]) -> bool:
        """Whether it is a new one."""
        async with self._changing:
            return await self._put(name, config)

    async def patch(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Without a value a setting is removed."""
        async with self._changing:
            config = {**self.wanted(name).config, **changes}
            await self._put(name, {key: value for key, value in config.items() if value is not None})

    async def _put(self, name: str, config: Mapping[str, str]) -> bool:
        checked = self._checked(name, config)
        new = name not in self._wanted
        await self._keep(name, Wanted(checked, RUNNING if new else self._wanted[name].state), new=new)
        return new

    async def delete(self, name: str) -> None:
        async with self._changing:
            self.wanted(name)
            if self._store is not None:
                await self._store.forget(name)
            del self._wanted[name]
            log.info("connector %s is deleted; its mirrors stay", name)
            self._apply()

    async def set_state(self, name: str, state: str) -> None:
        if name not in self._wanted:
            raise NotFound(f"Unknown connector {name}")
        async with self._changing:
            before = self.wanted(name)
            if self._store is not None:
                await self._store.keep_state(name, state)
            if before.state != state:
                log.info("connector %s is to be %s", name, state)
            self._wanted[name] = replace(before, state=state)
            self._apply()

    async def pause_topics(self, flow: str, topics: Iterable[str], paused: bool) -> list[str]:
        """Have single topics of a flow not be copied, or be copied again; which are paused then."""
        name = next((one for one in self.of_flow(flow) if self.part(one) == SOURCE), None)
        if name is None:
            raise Invalid(f"{flow} has no source connector: nothing of it is copied")
        async with self._changing:
            config = self.wanted(name).config
            now = set(split_list(config.get(TOPICS_PAUSED.name, ""))) - {""}
            now = now | set(topics) if paused else now - set(topics)
            await self._put(name, {**config, TOPICS_PAUSED.name: ",".join(sorted(now))})
        return sorted(now)

    def restart(self, name: str, itself: bool, tasks: Collection[int]) -> None:
        """`itself`: look at everything anew. `tasks`: those that are to begin anew."""
        deployed = self.deployed_of(name)
        if deployed is not None:
            of_source = self.part(name) == SOURCE
            deployed.restart(itself or (bool(tasks) and not of_source), tasks if of_source else ())

    async def _keep(self, name: str, wanted: Wanted, *, new: bool) -> None:
        if self._store is not None:
            if new and wanted.state != RUNNING:
                await self._store.keep_state(name, wanted.state)
            await self._store.keep(name, wanted.config)
        elif self._from_file:
            log.info("connector %s is changed until this process ends: the file still says otherwise", name)
        self._wanted[name] = wanted
        self._apply()

    # --- what is right --------------------------------------------------------------------------------------

    def _checked(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        """The whole config of a connector, if it can be run together with the others. Raises Invalid."""
        said = given.get("name", name)
        if said != name:
            raise Invalid(f"Connector name configuration ({said}) doesn't match connector name in the URL ({name})")
        before = self._wanted[name].config if name in self._wanted else {}
        try:
            config = {**with_secrets(given, before), "name": name}
        except ConfigError as error:
            raise invalid([str(error)]) from None
        part = part_of(config)
        if not config.get("connector.class", "").strip():
            raise Invalid(f"Connector config {{name={name}}} contains no connector type")
        if part is None:
            raise Invalid(
                "Failed to find any class that implements Connector and which name matches "
                f"{config['connector.class']}, available connectors are MirrorMaker 2's: MirrorSourceConnector, "
                "MirrorCheckpointConnector, MirrorHeartbeatConnector"
            )
        if wrong := [text for texts in problems(part, config).values() for text in texts]:
            raise invalid(wrong)
        if "/" in name:
            raise invalid([f"Invalid value {name} for configuration name: it has a slash, and no URL could name it"])
        try:
            one = connector(name, config)
            pair = (one.source, one.target)
            others = [known for known in self._names_of(pair) if known != name and known not in self._unfit]
            self._make(pair, {**{known: self._wanted[known] for known in others}, name: Wanted(config)})
        except ConfigError as error:
            raise invalid([str(error)]) from None
        return config

    def _apply(self) -> None:
        """The one place that decides what runs."""
        flows: list[Flow] = []
        self._unfit, self._idle = {}, set()
        pairs: dict[Pair, dict[str, Wanted]] = {}
        for name, wanted in self._wanted.items():
            try:
                one = connector(name, wanted.config)
                pairs.setdefault((one.source, one.target), {})[name] = wanted
            except ConfigError as error:
                self._unfit[name] = str(error)
        for pair, some in pairs.items():
            flow = self._make_of_fitting(pair, some)
            if flow is not None:
                flows.append(flow)
            parts = flow.parts if flow is not None else ()
            self._idle |= {name for name, one in some.items() if part_of(one.config) not in parts}
        self._running.apply(flows)

    def _make_of_fitting(self, pair: Pair, some: Mapping[str, Wanted]) -> Flow | None:
        """Of those that Connect has left, some may not go together: the first ones make the flow."""
        try:
            return self._make(pair, some)
        except ConfigError:
            pass
        fitting: dict[str, Wanted] = {}
        flow = None
        for name, wanted in some.items():
            try:
                flow = self._make(pair, {**fitting, name: wanted})
                fitting[name] = wanted
            except ConfigError as error:
                self._unfit[name] = str(error)
        return flow

    def _make(self, pair: Pair, some: Mapping[str, Wanted]) -> Flow | None:
        """The flow of some connectors; only those parts of it that are to run."""
        configs = {name: wanted.config for name, wanted in some.items()}
        in_file, flow_in_file = self._from_file.get(pair, ({}, None))
        if configs == in_file:
            flow = flow_in_file
        else:
            made = flow_of(
                [connector(name, config) for name, config in configs.items()],
                self.worker.settings,
                flow_in_file.connect_offsets if flow_in_file is not None else self._offsets(some),
            )
            self._remark(made)
            flow = made.flow
        if flow is None:
            return None
        paused = {part_of(wanted.config) for wanted in some.values() if wanted.state != RUNNING}
        return replace(flow, parts=flow.parts - paused)

    def _remark(self, made: Made) -> None:
        """What there is to say about settings, once."""
        for level, texts in ((logging.WARNING, made.warnings), (logging.INFO, made.notes)):
            for text in texts:
                if text not in self._remarked:
                    log.log(level, "%s", text)
                self._remarked.add(text)

    def _offsets(self, some: Mapping[str, Wanted]) -> ConnectOffsets | None:
        if not self.worker.offsets_topic:
            return None
        source = next((name for name, wanted in some.items() if part_of(wanted.config) == SOURCE), "")
        return ConnectOffsets(self.worker.offsets_topic, source or ConnectOffsets().connector, self.worker.group)

    # --- which there are ------------------------------------------------------------------------------------

    def of_flow(self, flow: str) -> list[str]:
        """The connectors of a flow, by its name `A->B`."""
        source, _, target = flow.partition("->")
        found = self._names_of((source, target))
        if not found:
            raise NotFound(f"There is no flow {flow}")
        return found

    def flow_name(self, name: str) -> str:
        try:
            one = connector(name, self.wanted(name).config)
        except ConfigError:
            return ""
        return f"{one.source}->{one.target}"

    def flow_names(self) -> list[str]:
        return sorted({self.flow_name(name) for name in self._wanted} - {""})

    def deployed(self, flow: str) -> FlowSupervisor | None:
        """None where no flow could be made, or it has nothing to do."""
        return self._running.deployed.get(flow)

    def copying(self) -> tuple[Flow, ...]:
        """All flows that copy."""
        return self._running.copying()

    def deployed_of(self, name: str) -> FlowSupervisor | None:
        return self.deployed(self.flow_name(name))

    @property
    def spark_is_up(self) -> bool:
        return self._running.spark_is_up

    def unfit(self, name: str) -> str:
        """Why no flow can be made of it; empty if one can."""
        return self._unfit.get(name, "")

    def is_idle(self, name: str) -> bool:
        """Whether it has nothing to do by its own settings."""
        return name in self._idle

    def part(self, name: str) -> str | None:
        """None for one that is none of MirrorMaker 2's."""
        return part_of(self.wanted(name).config)

    def _names_of(self, pair: Pair) -> list[str]:
        return [name for name in self._wanted if self.flow_name(name) == "->".join(pair)]


def invalid(texts: list[str]) -> Invalid:
    listed = "\n".join(texts)
    return Invalid(
        f"Connector configuration is invalid and contains the following {len(texts)} error(s):\n{listed}\nYou can also "
        "find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
    )
