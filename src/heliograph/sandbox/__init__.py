"""Real Apache Kafka clusters on loopback, without Docker: for tests, benchmarks and trying things out.

Knows nothing of the rest of Heliograph, and is not for data one would miss.
"""

from heliograph.sandbox.cluster import SandboxCluster
from heliograph.sandbox.cluster_processes import Death
from heliograph.sandbox.distribution import kafka_jars
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.jars import classpath, fetch
from heliograph.sandbox.sandbox import PROPERTIES_HEADER, Sandbox
from heliograph.sandbox.spec import DEFAULT_VERSION, ClusterSpec

__all__ = [
    "DEFAULT_VERSION",
    "PROPERTIES_HEADER",
    "ClusterSpec",
    "Death",
    "Sandbox",
    "SandboxCluster",
    "SandboxError",
    "classpath",
    "fetch",
    "kafka_jars",
]
