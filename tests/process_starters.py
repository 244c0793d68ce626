"""Finds the tests that start brokers, Spark or another process by what they refer to: nobody has to mark them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from py4j.java_gateway import launch_gateway

from heliograph.engine.daemon_ahead import start_ahead
from heliograph.engine.spark import Engine
from heliograph.sandbox import Sandbox

_STARTERS: tuple[object, ...] = (Sandbox, Engine, start_ahead, subprocess, launch_gateway)
_TESTS = Path(__file__).parent


@cache
def starts_processes(*functions: Callable[..., object]) -> bool:
    """Whether a test, one of its fixtures, or a helper in `tests` that they call, refers to something that does."""
    seen: set[int] = set()
    return any(_refers(function, seen) for function in functions)


def _refers(value: object, seen: set[int]) -> bool:
    if any(value is starter for starter in _STARTERS):
        return True
    if id(value) in seen:
        return False
    seen.add(id(value))
    return any(_refers(referred, seen) for referred in _references(value))


def _references(value: Any) -> Iterator[object]:
    value = getattr(value, "__wrapped__", value)  # of a decorated function
    if isinstance(value, type):
        if _is_of_tests(value):
            yield from vars(value).values()
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    elif isinstance(value, classmethod | staticmethod):
        yield value.__func__
    elif isinstance(value, FunctionType) and Path(value.__code__.co_filename).is_relative_to(_TESTS):
        yield from (value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__)


def _is_of_tests(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and Path(file).is_relative_to(_TESTS)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
