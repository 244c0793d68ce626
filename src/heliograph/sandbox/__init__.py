"""Real Apache Kafka clusters on loopback, without Docker: for tests, benchmarks and trying things out.

Knows nothing of the rest of Heliograph, and is not for data one would miss.
"""

from heliograph.sandbox.broker import write_properties
from heliograph.sandbox.certificates import Authority, Identity, write_key_store, write_trust_store
from heliograph.sandbox.cluster import SandboxCluster
from heliograph.sandbox.cluster_processes import Death
from heliograph.sandbox.cluster_security import ClusterSecurity
from heliograph.sandbox.distribution import kafka_jars
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.jars import classpath, fetch
from heliograph.sandbox.private_files import write_private
from heliograph.sandbox.sandbox import PROPERTIES_HEADER, Sandbox
from heliograph.sandbox.secured_listeners import KINDS
from heliograph.sandbox.spec import ADMIN, DEFAULT_VERSION, MIRROR, ClusterSpec
from heliograph.sandbox.tokens import TokenServer

__all__ = [
    "ADMIN",
    "DEFAULT_VERSION",
    "KINDS",
    "MIRROR",
    "PROPERTIES_HEADER",
    "Authority",
    "ClusterSecurity",
    "ClusterSpec",
    "Death",
    "Identity",
    "Sandbox",
    "SandboxCluster",
    "SandboxError",
    "TokenServer",
    "classpath",
    "fetch",
    "kafka_jars",
    "write_key_store",
    "write_private",
    "write_properties",
    "write_trust_store",
]
