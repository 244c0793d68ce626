"""Prometheus' programs for tests, which are skipped where there are none."""

import prometheus
import pytest


def tool(name: str) -> str:
    """`prometheus` or `promtool`."""
    found = prometheus.find(name)
    if not found:
        pytest.skip(f"no {name} on the path, and Debian's package cannot be fetched")
    return found
