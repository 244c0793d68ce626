"""Records of Kafka Connect's configs and status topics.

Values are JSON without schemas. A record without a value is a tombstone.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

RUNNING, PAUSED, STOPPED = "RUNNING", "PAUSED", "STOPPED"

Pair = tuple[bytes, bytes | None]

_CONNECTOR, _STATE, _COMMIT = "connector-", "target-state-", "commit-"
_STARTED = "STARTED"


@dataclass(slots=True)
class Stored:
    """The connectors of a configs topic, read record by record: their configs and target states."""

    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)

    def add(self, key: bytes, value: bytes | None) -> None:
        """Ignores records of tasks, sessions and the like. Raises ValueError for one that cannot be decoded."""
        name = key.decode()
        if name.startswith(_CONNECTOR):
            self._config(name.removeprefix(_CONNECTOR), value)
        elif name.startswith(_STATE):
            self._state(name.removeprefix(_STATE), value)

    def _config(self, name: str, value: bytes | None) -> None:
        self.configs.pop(name, None)
        if value is None:
            return
        properties = json.loads(value).get("properties")
        if not isinstance(properties, dict):
            raise ValueError(f"connector {name} has no properties")
        self.configs[name] = {str(key): str(text) for key, text in properties.items() if text is not None}

    def _state(self, name: str, value: bytes | None) -> None:
        self.states.pop(name, None)
        if value is not None:
            fields = json.loads(value)
            state = fields.get("state.v2") or fields.get("state")
            self.states[name] = RUNNING if state == _STARTED else str(state)


def config_record(name: str, config: Mapping[str, str]) -> Pair:
    return f"{_CONNECTOR}{name}".encode(), _json({"properties": config})


def state_records(name: str, state: str) -> list[Pair]:
    """Connect before 3.5 has no stopped connectors: for it they are paused. A stopped connector has no tasks."""
    old = {RUNNING: _STARTED, STOPPED: PAUSED}.get(state, state)
    new = _STARTED if state == RUNNING else state
    wanted: list[Pair] = [(f"{_STATE}{name}".encode(), _json({"state": old, "state.v2": new}))]
    return [(f"{_COMMIT}{name}".encode(), _json({"tasks": 0})), *wanted] if state == STOPPED else wanted


def deleted_records(name: str) -> list[Pair]:
    return [(f"{_CONNECTOR}{name}".encode(), None), (f"{_STATE}{name}".encode(), None)]


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a connector or a task. Its generation is the lowest, so that every Connect worker overwrites it."""

    state: str
    worker: str
    version: str | None
    trace: str = ""

    def to_value(self) -> bytes:
        return _json(
            {
                "state": self.state,
                "trace": self.trace or None,
                "worker_id": self.worker,
                "generation": 0,
                "version": self.version,
            }
        )


def status_key(name: str, task: int | None = None) -> bytes:
    return f"status-connector-{name}".encode() if task is None else f"status-task-{name}-{task}".encode()


def connector_states(records: Mapping[bytes, bytes | None], name: str) -> tuple[str, set[str]]:
    """The state of a connector, empty if it has none, and those of its tasks, from the latest record of every key."""
    own = _state_in(records.get(status_key(name)))
    prefix = status_key(name, 0)[:-1]
    tasks = {_state_in(value) for key, value in records.items() if _is_task(key, prefix)}
    return own, tasks - {""}


def _is_task(key: bytes, prefix: bytes) -> bool:
    """Another connector's name may begin with this one's."""
    return key.startswith(prefix) and key[len(prefix) :].isdigit()


def _state_in(value: bytes | None) -> str:
    try:
        fields = json.loads(value) if value is not None else None
    except ValueError:
        return ""
    return str(fields.get("state", "")) if isinstance(fields, dict) else ""


def stale_keys(keys: Iterable[bytes], kept: Iterable[bytes]) -> list[Pair]:
    """Tombstones for the statuses among `keys` that are not in `kept`."""
    wanted = set(kept)
    return [
        (key, None)
        for key in keys
        if key not in wanted and key.startswith((b"status-connector-", b"status-task-", b"status-topic-"))
    ]


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
