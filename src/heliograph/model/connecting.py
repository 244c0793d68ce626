"""How a client opens its connections to brokers, and how long it keeps them."""

from dataclasses import dataclass

from heliograph.model.backoff import Backoff

SYSTEM_BUFFER = -1
USE_ALL_DNS_IPS = "use_all_dns_ips"
CANONICAL_BOOTSTRAP_SERVERS = "resolve_canonical_bootstrap_servers_only"
_SETUP_TIMEOUT = Backoff(5.0, 5.0)
_RECONNECT_BACKOFF = Backoff(0.05, 1.0)


@dataclass(frozen=True, slots=True)
class Connecting:
    """Times in seconds.

    - send_buffer, receive_buffer: sizes of the socket's buffers. By default the operating system adapts them to the
      connection; a fixed size ends that.
    - setup_timeout: how long opening a connection may take, the first response included; twice as long with TLS or a
      login. It grows with each failure in a row, but not by default: a dead broker must not hold up others.
    - reconnect: for how long no further attempt is made after a failed one.
    - max_idle: when a connection without requests is closed; below 0: never.
    - metadata_max_age: how old the known brokers and leaders may be.
    - dns_lookup: whether bootstrap servers are replaced by the canonical names of their addresses. In any case all
      addresses of a name are tried.
    """

    send_buffer: int = SYSTEM_BUFFER
    receive_buffer: int = SYSTEM_BUFFER
    setup_timeout: Backoff = _SETUP_TIMEOUT
    reconnect: Backoff = _RECONNECT_BACKOFF
    max_idle: float = 540.0
    metadata_max_age: float = 300.0
    dns_lookup: str = USE_ALL_DNS_IPS


DEFAULT_CONNECTING = Connecting()
