"""Prometheus' programs for tests, which are skipped where there are none."""

import prometheus
import pytest


def tool(name: str) -> str:
    """`prometheus` or `promtool`."""
    path = prometheus.find(name)
    if not path:
        pytest.skip(f"no {name} on the path, and Debian's package cannot be fetched")
    return path
