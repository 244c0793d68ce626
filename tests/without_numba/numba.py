"""Hides the real numba from all processes of a test: `make test-without-numba` has this folder on its PYTHONPATH."""

raise ImportError("numba is missing in this run")
