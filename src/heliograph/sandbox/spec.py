"""The specification of a cluster: number of brokers, version of Kafka, settings.

It rejects what no cluster could be. Settings are checked by the broker itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from heliograph.sandbox.broker import version_numbers
from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.secured_listeners import KINDS

DEFAULT_VERSION = "4.3.1"
MIRROR, ADMIN = "mirror", "admin"

_SECURITY_SINCE = (3, 5)  # the first KRaft with SCRAM


@dataclass(frozen=True)
class ClusterSpec:
    """The specification of a cluster. `ports` are for the first brokers in turn; the others get free ports.

    `listeners` adds listeners to the plaintext one: name to security protocol, e.g. {"LOGIN": "SASL_PLAINTEXT"};
    what the protocol needs goes into `settings`, see `SandboxCluster.bootstrap_of` for the addresses.
    `advertised_ports` is for proxies in front of brokers: name of a listener to the ports at which clients find it, one
    for each of the first brokers in turn. `fast_start` trades the broker's speed for a sooner start: for tests, not for
    measurements. `racks` are those of the first brokers in turn.

    `security` adds secured listeners: one or several of tls, mtls, scram, plain, oauth and sasl-plaintext. The first
    one gets the `ports`. `users` can log in; ACLs apply to them, unless they are `super_users`. The plaintext listener
    stays, for brokers among themselves; a client that uses it, or tls without a certificate, may do everything.
    """

    brokers: int = 1
    version: str = DEFAULT_VERSION
    settings: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    heap_mb: int = 256
    fast_start: bool = False
    gc: Literal["serial", "g1"] = "serial"
    listeners: Mapping[str, str] = field(default_factory=dict)
    advertised_ports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    jvm_flags: tuple[str, ...] = ()
    security: tuple[str, ...] = ()
    users: tuple[str, ...] = (MIRROR, ADMIN)
    super_users: tuple[str, ...] = (ADMIN,)
    racks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.brokers < 1:
            raise SandboxError(f"a cluster has one broker or more, not {self.brokers}")
        if not re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?", self.version):
            raise SandboxError(f"{self.version!r} is not a version of Kafka such as {DEFAULT_VERSION}")
        if len(self.ports) > self.brokers:
            raise SandboxError(f"{len(self.ports)} ports are too many for {self.brokers} broker(s)")
        if len(set(self.ports)) < len(self.ports):
            raise SandboxError(f"a port is given twice: {', '.join(map(str, self.ports))}")
        if not all(0 < port < 65536 for port in self.ports):
            raise SandboxError(f"ports are between 1 and 65535, not {', '.join(map(str, self.ports))}")
        if self.heap_mb < 64:
            raise SandboxError(f"a broker needs 64 MB of heap or more, not {self.heap_mb}")
        for kind in self.security:
            if kind not in KINDS:
                raise SandboxError(f"{kind!r} is no kind of security; there are {', '.join(KINDS)}")
        if self.security and version_numbers(self.version) < _SECURITY_SINCE:
            raise SandboxError(f"security needs Kafka 3.5.0 or newer, not {self.version}")
