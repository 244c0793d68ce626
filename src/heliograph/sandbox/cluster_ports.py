"""The ports of one cluster: those that its spec names, and free ones for everything else."""

from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.ports import HOST, free_ports, is_free
from heliograph.sandbox.secured_listeners import KINDS
from heliograph.sandbox.spec import ClusterSpec

PLAINTEXT = "PLAINTEXT"


class ClusterPorts:
    """`taken` holds the ports of all clusters of the sandbox, and is shared by them."""

    def __init__(self, alias: str, spec: ClusterSpec, taken: set[int]) -> None:
        self._alias = alias
        self._spec = spec
        self._taken = taken
        self.listeners: dict[int, dict[str, tuple[str, int]]] = {}  # by broker: name to protocol and port
        self.controllers: dict[int, int] = {}  # broker to port
        self.zookeeper = 0
        self.choose()

    def choose(self) -> None:
        """Chooses ports, other ones than before. Raises SandboxError if a port of the spec is in use."""
        for port in self._spec.ports:
            if not is_free(port):
                raise SandboxError(f"cluster {self._alias}: port {port} is in use by another program")
        broker_ids = range(1, self._spec.brokers + 1)
        # Three controllers survive the loss of any one of them. Two would be down with either.
        controllers = broker_ids[: 3 if self._spec.brokers >= 3 else 1]
        secured = {KINDS[kind].name: KINDS[kind].protocol for kind in self._spec.security}
        protocols = {PLAINTEXT: PLAINTEXT, **secured, **self._spec.listeners}
        clients_listener = next(iter(secured), PLAINTEXT)
        free = free_ports(len(controllers) + 1 + len(protocols) * len(broker_ids), self._taken)
        self._taken.update(free)
        self.controllers = {broker: free.pop() for broker in controllers}
        self.zookeeper = free.pop()
        for broker in broker_ids:
            self.listeners[broker] = {name: (protocol, free.pop()) for name, protocol in protocols.items()}
        for broker, port in zip(broker_ids, self._spec.ports, strict=False):
            self.listeners[broker][clients_listener] = (protocols[clients_listener], port)

    def bootstrap(self, listener: str) -> str:
        """`host:port` of every broker, comma-separated."""
        return ",".join(f"{HOST}:{port}" for port in self.all_ports(listener))

    def all_ports(self, listener: str) -> list[int]:
        """The port of every broker."""
        return [listeners[listener][1] for listeners in self.listeners.values()]

    def port(self, broker: int) -> int:
        return self.listeners[broker][PLAINTEXT][1]
