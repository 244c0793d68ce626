"""Classes that a file may name: MirrorMaker 2's own, which are built in, and a user's, by their Python path.

A user's class is imported when its name is checked and made when a flow is put together. Its instances travel to Spark
executors inside the flow, so they must survive pickling, and the executors must be able to import the class too.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.model.names import Matches
from heliograph.model.policy import ReplicationPolicy

_EXAMPLE = "mypackage.mymodule.MyClass"
_KAFKA = "org.apache.kafka.connect.mirror"
_STRIMZI = "io.strimzi.kafka.connect.mirror"
_JAVA = frozenset({"org", "com", "io", "net", "java", "javax"})


@dataclass(frozen=True, slots=True)
class Plugin:
    """The name of a class. The answer is the simple name of a built-in one, with or without MM2's package in front, or
    the class itself. Strimzi's Identity policy, from the time before Kafka had one, does the same as Kafka's."""

    builtin: tuple[str, ...]
    label: str = "class"

    def parse(self, text: str) -> str | type[object]:
        path = text.strip()
        package, _, simple = path.rpartition(".")
        packages = ("", _KAFKA, _STRIMZI) if simple == "IdentityReplicationPolicy" else ("", _KAFKA)
        if simple in self.builtin and package in packages:
            return simple
        if not package:
            raise ValueError(f"is neither built in ({', '.join(self.builtin)}) nor a Python class path like {_EXAMPLE}")
        return _imported(package, simple)


def _imported(package: str, simple: str) -> type[object]:
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if package.partition(".")[0] in _JAVA:
            raise ValueError(
                f"is the name of a Java class, which cannot be loaded here: write the path of a Python class that does "
                f"the same, like {_EXAMPLE}"
            ) from None
        raise ValueError(f"cannot be imported: {error} (is it on PYTHONPATH?)") from None
    except Exception as error:
        raise ValueError(f"cannot be imported: {type(error).__name__}: {error}") from None
    found = getattr(module, simple, None)
    if not isinstance(found, type):
        raise ValueError(f"cannot be used: the module {package} has no class {simple}")
    return found


def make_policy(cls: type[object], options: Mapping[str, str | None]) -> ReplicationPolicy:
    """An instance, given those of the options by keyword that its constructor has a parameter for."""
    taken = inspect.signature(cls).parameters
    open_ended = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    by_name = {name for name, one in taken.items() if one.kind is not inspect.Parameter.POSITIONAL_ONLY}
    made = _made(cls, (), {name: value for name, value in options.items() if open_ended or name in by_name})
    if not isinstance(made, ReplicationPolicy):
        raise ValueError(f"is no replication policy: it has no {_missing(made, ReplicationPolicy)}")
    return made


def make_filter(cls: type[object], settings: Mapping[str, str]) -> Matches:
    """An instance, given the settings of its flow if its constructor takes anything."""
    takes = inspect.signature(cls).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    made = _made(cls, (dict(settings),) if any(one.kind in positional for one in takes) else (), {})
    if not isinstance(made, Matches):
        raise ValueError(f"is no filter: it has no {_missing(made, Matches)}")
    return made


def _made(cls: type[object], args: tuple[object, ...], options: Mapping[str, object]) -> object:
    try:
        inspect.signature(cls).bind(*args, **options)
    except TypeError as error:
        raise ValueError(f"cannot be constructed: {error}") from None
    try:
        made = cls(*args, **options)
    except Exception as error:
        raise ValueError(f"cannot be constructed: {type(error).__name__}: {error}") from None
    try:
        pickle.loads(pickle.dumps(made))
    except Exception as error:
        raise ValueError(
            f"cannot be sent to Spark's executors: its instances do not survive pickling: {error}"
        ) from None
    return made


def _missing(made: object, protocol: type[object]) -> str:
    wanted = [name for name, one in vars(protocol).items() if inspect.isfunction(one) and not name.startswith("_")]
    return ", ".join(f"{name}()" for name in wanted if not callable(getattr(made, name, None)))
