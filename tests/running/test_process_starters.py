"""`make check` leaves out the tests that start a process, and finds them by itself."""

import subprocess
from collections.abc import Callable

import pytest

from heliograph.sandbox import Sandbox
from process_starters import starts_processes
from running.command import in_process, start


class _Cluster:
    @property
    def sandbox(self) -> Sandbox:
        return Sandbox()


def _direct() -> None:
    subprocess.run(["true"], check=True)


def _by_a_helper() -> None:
    _direct()


def _by_a_helper_of_another_module() -> None:
    start("run", log=None)  # type: ignore[arg-type]


def _by_a_method() -> None:
    _ = _Cluster().sandbox


def _in_a_nested_function() -> None:
    def nested() -> None:
        _direct()

    nested()


def _nothing() -> None:
    in_process("--version")


# In a dict, where the search does not look: this test starts nothing itself.
_STARTS: dict[str, tuple[Callable[[], None], bool]] = {
    "direct": (_direct, True),
    "helper": (_by_a_helper, True),
    "other module": (_by_a_helper_of_another_module, True),
    "method": (_by_a_method, True),
    "nested": (_in_a_nested_function, True),
    "nothing": (_nothing, False),
}


@pytest.mark.parametrize("name", list(_STARTS))
def test_a_test_that_starts_a_process_is_found_wherever_it_does_so(name: str) -> None:
    function, starts = _STARTS[name]
    assert starts_processes(function) == starts
    assert starts_processes(_nothing, function) == starts


def test_this_test_is_marked_by_what_it_refers_to(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("processes") is None
