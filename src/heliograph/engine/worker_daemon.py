"""Spark's daemon that forks Python workers, with everything loaded that a lease needs: workers share it.

Used where Spark runs on this machine. Elsewhere the daemon may not find Heliograph, which Spark ships to workers only.
"""

from pyspark.daemon import manager

import heliograph.engine.lease  # noqa: F401
from heliograph.wire.kernels.loading import load

if __name__ == "__main__":
    load()
    manager()
