"""Prometheus' programs for tests. Without them, the tests are skipped."""

import prometheus
import pytest


def tool(name: str) -> str:
    """`prometheus` or `promtool`."""
    path = prometheus.find(name)
    if not path:
        pytest.skip(f"no {name} on the PATH, and Debian's package cannot be downloaded")
    return path
