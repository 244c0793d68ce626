"""How long a process may act as a member of its group."""

import os
import subprocess
import sys

import pytest

from heliograph.service import tenure as module
from heliograph.service.process_identity import is_dead, own_identity
from heliograph.service.tenure import Tenure
from heliograph.wire.errors import Fenced


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr(module, "now", lambda: moment[0])
    return moment


def test_it_is_counted_from_when_the_last_answered_request_was_sent(clock: list[float]) -> None:
    tenure = Tenure("g", 10.0)
    clock[0] = 105.0
    tenure.confirm(104.0)
    clock[0] = 113.9
    tenure.check()
    clock[0] = 114.0
    assert tenure.left == 0.0
    with pytest.raises(Fenced, match="no member of group g any more"):
        tenure.check()


def test_an_answer_to_an_old_request_does_not_make_it_valid_again(clock: list[float]) -> None:
    tenure = Tenure("g", 10.0)
    clock[0] = 150.0
    tenure.confirm(139.0)  # sent before the process was frozen
    assert not tenure.is_valid
    tenure.confirm(149.0)
    assert tenure.is_valid


def test_what_has_ended_does_not_begin_again(clock: list[float]) -> None:
    ended = Tenure("g", 10.0)
    ended.end()
    ended.confirm(clock[0])
    assert not ended.is_valid
    assert ended.left == 0.0


def test_a_process_of_this_machine_is_known_to_be_dead() -> None:
    assert own_identity().split("/")[2] == str(os.getpid())
    assert not is_dead(own_identity())
    code = "from heliograph.service.process_identity import own_identity; print(own_identity(), end='')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert is_dead(other)
    assert not is_dead("another-boot/" + other.partition("/")[2])
    assert not is_dead("")
