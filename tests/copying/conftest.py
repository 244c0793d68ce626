"""Simulated clusters for tests of single schedules."""

from collections.abc import Iterator

import pytest

from copying.simulation.world import Choices, World


@pytest.fixture
def world() -> Iterator[World]:
    created = World(Choices())
    yield created
    created.close()
