"""What the members of a deployment tell each other through their group: each about itself when it joins (`Member`), the
leader about the flows of all (`Assignment`). As JSON; unknown fields are ignored, missing ones have defaults."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

FORMAT = 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the deployment, in the group of one target cluster.

    `run` is its own name, new at every start. `process` says on which machine it is and which process there, so that
    another process of that machine can tell whether it is dead. `settings` are the hashes of its flows
    (`model/fingerprint`), `flows` their names, `driven` those that it drives now. `loads` are in records per second, of
    flows that it drives or has driven. `other_load` is that of the flows that it drives into other clusters. `version`
    is Heliograph's.
    """

    run: str
    host: str = ""
    rest: str = ""
    version: str = ""
    process: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    flows: tuple[str, ...] = ()
    driven: tuple[str, ...] = ()
    loads: Mapping[str, float] = field(default_factory=dict)
    other_load: float = 0.0
    format: int = FORMAT

    def __str__(self) -> str:
        return f"{self.run} on {self.host}" if self.host else self.run


@dataclass(frozen=True, slots=True)
class Share:
    """What one member has to do. `flows` are its own now; `coming` are those that it gets when another member has
    stopped them; `refused` says why it gets none, empty if it may."""

    run: str
    host: str = ""
    rest: str = ""
    version: str = ""
    flows: tuple[str, ...] = ()
    coming: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What all members have to do, by the leader."""

    leader: str = ""
    shares: tuple[Share, ...] = ()
    format: int = FORMAT

    def share(self, run: str) -> Share:
        return next((share for share in self.shares if share.run == run), Share(run))


def encode(value: Member | Assignment) -> bytes:
    return json.dumps(dataclasses.asdict(value), separators=(",", ":")).encode()


def decode_member(data: bytes) -> Member | None:
    """None if it is none of ours."""
    fields = _fields(data)
    return _of_fields(Member, fields) if fields is not None and "run" in fields else None


def decode_assignment(data: bytes) -> Assignment:
    fields = _fields(data) or {}
    shares = tuple(_of_fields(Share, row) for row in fields.get("shares", ()))
    return Assignment(str(fields.get("leader", "")), shares, int(fields.get("format", FORMAT)))


def _fields(data: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(data)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def _of_fields(kind: type[T], fields: Mapping[str, Any]) -> T:
    names = {known.name for known in dataclasses.fields(kind)}  # type: ignore[arg-type]
    known = {name: value for name, value in fields.items() if name in names}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})
