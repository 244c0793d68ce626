"""Several ways to the same result."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from heliograph.wire.racing import AllFailed, first_success
from waiting import PATIENCE


def _run(main: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await main

    return asyncio.run(bounded())


async def _fail(text: str) -> str:
    raise ValueError(text)


async def _hang(text: str) -> str:
    await asyncio.Event().wait()
    return text


async def _succeed(text: str) -> str:
    return text


def test_after_a_failure_the_next_attempt_begins_at_once() -> None:
    attempts = [partial(_fail, "1"), partial(_fail, "2"), partial(_succeed, "3")]
    assert _run(first_success(attempts, 10 * PATIENCE, ValueError)) == "3"


def test_an_attempt_that_hangs_does_not_hold_up_the_next() -> None:
    assert _run(first_success([partial(_hang, "1"), partial(_succeed, "2")], 0.01, ValueError)) == "2"


def test_attempts_that_are_not_needed_do_not_begin() -> None:
    begun: list[str] = []

    async def attempt(text: str) -> str:
        begun.append(text)
        return text

    assert _run(first_success([partial(attempt, "1"), partial(attempt, "2")], PATIENCE, ValueError)) == "1"
    assert begun == ["1"]


def test_all_errors_are_reported() -> None:
    with pytest.raises(AllFailed) as raised:
        _run(first_success([partial(_fail, "1"), partial(_fail, "2")], PATIENCE, ValueError))
    assert list(map(str, raised.value.errors)) == ["1", "2"]
    with pytest.raises(AllFailed):
        _run(first_success([], PATIENCE, ValueError))
    with pytest.raises(ValueError, match="1"):
        _run(first_success([partial(_fail, "1"), partial(_succeed, "2")], PATIENCE, OSError))


def test_after_the_deadline_no_further_attempt_begins() -> None:
    with pytest.raises(AllFailed) as raised:
        _run(first_success([partial(_succeed, "1")], PATIENCE, ValueError, give_up_at=0.0))
    assert raised.value.errors == []


def test_of_two_results_one_is_discarded() -> None:
    async def main() -> None:
        may_end = asyncio.Event()
        discarded: list[str] = []

        async def attempt(text: str) -> str:
            if text == "2":
                may_end.set()
            await may_end.wait()
            return text

        first = await first_success([partial(attempt, "1"), partial(attempt, "2")], 0.01, ValueError, discarded.append)
        while not discarded:
            await asyncio.sleep(0)
        assert {first, *discarded} == {"1", "2"}

    _run(main())


def test_whoever_is_cancelled_leaves_no_attempt_behind() -> None:
    async def main() -> None:
        racing = asyncio.create_task(first_success([partial(_hang, "1"), partial(_hang, "2")], 0.0, ValueError))
        while len(asyncio.all_tasks()) < 4:
            await asyncio.sleep(0)
        racing.cancel()
        await asyncio.wait([racing])
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    _run(main())
