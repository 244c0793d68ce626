"""Classes that a file may name: MirrorMaker 2's own, which are built in, and a user's, by their Python path.

A user's class is imported when its name is checked and instantiated when its flow is. The flow is sent to Spark's
executors, so instances must survive pickling, and the executors must be able to import the class too.
"""

import importlib
import inspect
import pickle
from collections.abc import Mapping

from heliograph.config.declare.kinds import Kind
from heliograph.model.names import Matches
from heliograph.model.policy import ReplicationPolicy

MIRROR_PACKAGE = "org.apache.kafka.connect.mirror"
_EXAMPLE = "mypackage.mymodule.MyClass"
_STRIMZI = "io.strimzi.kafka.connect.mirror"
_JAVA = frozenset({"org", "com", "io", "net", "java", "javax"})


def plugin(*builtin: str) -> Kind[str | type[object]]:
    """The name of a class. The value is the simple name of a built-in one, with or without MM2's package in front, or
    the class itself. Strimzi's Identity policy, from the time before Kafka had one, does the same as Kafka's."""

    def parse(text: str) -> str | type[object]:
        package, _, simple = text.strip().rpartition(".")
        packages = ("", MIRROR_PACKAGE, _STRIMZI) if simple == "IdentityReplicationPolicy" else ("", MIRROR_PACKAGE)
        if simple in builtin and package in packages:
            return simple
        if not package:
            raise ValueError(f"is neither built in ({', '.join(builtin)}) nor a Python class path like {_EXAMPLE}")
        return _imported(package, simple)

    return Kind("class", parse)


def is_built_in_package(package: str) -> bool:
    """Whether a class of this package is never imported; the package of a bare name is empty."""
    return package in ("", MIRROR_PACKAGE, _STRIMZI)


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
    imported = getattr(module, simple, None)
    if not isinstance(imported, type):
        raise ValueError(f"cannot be used: the module {package} has no class {simple}")
    return imported


def make_policy(cls: type[object], options: Mapping[str, str | None]) -> ReplicationPolicy:
    """An instance, given those of the options by keyword that its constructor has a parameter for."""
    taken = inspect.signature(cls).parameters
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken.values())
    by_name = {name for name, parameter in taken.items() if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY}
    instance = _instantiate(cls, (), {name: value for name, value in options.items() if takes_any or name in by_name})
    if not isinstance(instance, ReplicationPolicy):
        raise ValueError(f"is not a replication policy: it has no {_missing(instance, ReplicationPolicy)}")
    return instance


def make_filter(cls: type[object], settings: Mapping[str, str]) -> Matches:
    """An instance, given the settings of its flow if its constructor takes anything."""
    takes = inspect.signature(cls).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    instance = _instantiate(
        cls, (dict(settings),) if any(parameter.kind in positional for parameter in takes) else (), {}
    )
    if not isinstance(instance, Matches):
        raise ValueError(f"is not a filter: it has no {_missing(instance, Matches)}")
    return instance


def _instantiate(cls: type[object], args: tuple[object, ...], options: Mapping[str, object]) -> object:
    try:
        inspect.signature(cls).bind(*args, **options)
    except TypeError as error:
        raise ValueError(f"cannot be constructed: {error}") from None
    try:
        instance = cls(*args, **options)
    except Exception as error:
        raise ValueError(f"cannot be constructed: {type(error).__name__}: {error}") from None
    try:
        pickle.loads(pickle.dumps(instance))
    except Exception as error:
        raise ValueError(
            f"cannot be sent to Spark's executors: its instances do not survive pickling: {error}"
        ) from None
    return instance


def _missing(instance: object, protocol: type[object]) -> str:
    methods = [
        name for name, member in vars(protocol).items() if inspect.isfunction(member) and not name.startswith("_")
    ]
    return ", ".join(f"{name}()" for name in methods if not callable(getattr(instance, name, None)))
