"""Which settings take effect while a flow runs, which restart its leases, and which need a new runner."""

from dataclasses import fields, replace
from typing import Any

import pytest

from heliograph.model.flow import Flow, LeaseSettings
from service.fakes import FLOW

NEW_RUNNER = {
    *("source", "target", "connector_aliases", "policy", "checkpoint_policy"),
    *("kept_offsets", "connect_offsets"),
}
LEASES = {field.name for field in fields(LeaseSettings)}


@pytest.mark.parametrize("name", [field.name for field in fields(Flow)])
def test_every_setting_has_an_effect(name: str) -> None:
    """Any other value does: a setting that nobody has thought of needs a new runner."""
    other: Any = "another value"
    changed = replace(FLOW, **{name: other})
    assert FLOW.needs_new_runner(changed) == (name in NEW_RUNNER)
    assert (FLOW.lease_settings != changed.lease_settings) == (name in LEASES)


def test_leases_know_these_settings() -> None:
    assert {
        *("reading", "writing", "buffer_memory", "lease_seconds", "max_bytes_per_second", "may_raise_limits"),
        *("policies", "reader", "writer", "retry_backoff"),
    } == LEASES


def test_nothing_happens_without_a_change() -> None:
    assert not FLOW.needs_new_runner(replace(FLOW))
    assert FLOW.lease_settings == replace(FLOW).lease_settings
