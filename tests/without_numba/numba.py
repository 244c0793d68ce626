"""Stands in front of the real numba on PYTHONPATH, so that all processes of a test do without it: `make test-without-numba`."""

raise ImportError("numba is missing in this run")
