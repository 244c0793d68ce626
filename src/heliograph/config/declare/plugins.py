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
POLICIES = DEFAULT_POLICY, IDENTITY_POLICY = "DefaultReplicationPolicy", "IdentityReplicationPolicy"
# Well-known Java classes that name mirrors as a built-in class does. Those in `_PLAIN_HEARTBEATS` give no prefix to
# heartbeats either, which is not possible here: each cluster writes heartbeats of its own to a topic of that name.
_STANDS_FOR = {
    "ch.mawileo.kafka.mm2.PrefixlessReplicationPolicy": IDENTITY_POLICY,
    "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy": IDENTITY_POLICY,
    "com.instaclustr.kafka.connect.mirror.SimpleReplicationPolicy": IDENTITY_POLICY,
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": IDENTITY_POLICY,
}
_PLAIN_HEARTBEATS = frozenset(name for name in _STANDS_FOR if name.startswith("com."))
_EXAMPLE = "mypackage.mymodule.MyClass"
_JAVA = frozenset({"org", "com", "io", "net", "java", "javax"})


def plugin(*builtin: str) -> Kind[str | type[object]]:
    """The name of a class. The value is the simple name of a built-in one, with or without MM2's package in front, or
    of the one that stands for a well-known Java class; else the class itself."""

    def parse(text: str) -> str | type[object]:
        package, _, simple = text.strip().rpartition(".")
        if simple in builtin and package in ("", MIRROR_PACKAGE):
            return simple
        built_in = stand_in(text.strip())
        if built_in is not None and built_in in builtin:
            return built_in
        if not package:
            raise ValueError(f"is neither built in ({', '.join(builtin)}) nor a Python class path like {_EXAMPLE}")
        return _imported(package, simple, builtin)

    return Kind("class", parse)


def is_built_in(name: str) -> bool:
    """Whether a class of this name is never imported."""
    return name in _STANDS_FOR or name.rpartition(".")[0] in ("", MIRROR_PACKAGE)


def stand_in(name: str) -> str | None:
    """The built-in class that stands for a well-known Java class; None for all others."""
    return _STANDS_FOR.get(name)


def keeps_heartbeats_name(name: str) -> bool:
    """Whether a well-known Java class gives no prefix to heartbeats, unlike the one that stands for it."""
    return name in _PLAIN_HEARTBEATS


def _imported(package: str, simple: str, builtin: tuple[str, ...]) -> type[object]:
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if package.partition(".")[0] in _JAVA:
            raise ValueError(f"is the name of a Java class, which cannot be loaded here: {_instead(builtin)}") from None
        raise ValueError(f"cannot be imported: {error} (is it on PYTHONPATH?)") from None
    except Exception as error:
        raise ValueError(f"cannot be imported: {type(error).__name__}: {error}") from None
    imported = getattr(module, simple, None)
    if not isinstance(imported, type):
        raise ValueError(f"cannot be used: the module {package} has no class {simple}")
    return imported


def _instead(builtin: tuple[str, ...]) -> str:
    own = f"the path of a Python class that does the same, like {_EXAMPLE}"
    if IDENTITY_POLICY in builtin:
        return (
            f"write {IDENTITY_POLICY} if mirrors have the names of their topics, {DEFAULT_POLICY} if the source's "
            f"alias is in front, or {own}"
        )
    return f"write {builtin[0]} or {own}"


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
