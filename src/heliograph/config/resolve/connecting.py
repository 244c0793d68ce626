"""From settings to how one client of a cluster connects, and to the backoff of partitions."""

from heliograph.config.declare import supported
from heliograph.config.declare.setting import Setting
from heliograph.config.resolve.security import Client
from heliograph.model.backoff import Backoff
from heliograph.model.connecting import Connecting


def connecting(of: Client) -> Connecting:
    return Connecting(
        of.get(supported.SEND_BUFFER),
        of.get(supported.RECEIVE_BUFFER),
        _backoff(of, supported.SETUP_TIMEOUT, supported.SETUP_TIMEOUT_MAX),
        _backoff(of, supported.RECONNECT_BACKOFF, supported.RECONNECT_BACKOFF_MAX),
        _seconds(of, supported.CONNECTIONS_MAX_IDLE),
        _seconds(of, supported.METADATA_MAX_AGE),
        of.get(supported.CLIENT_DNS_LOOKUP),
    )


def _backoff(of: Client, first: Setting[int], longest: Setting[int]) -> Backoff:
    """As in Kafka's clients, a reconnect backoff does not grow if only the first one is set."""
    if of.find(longest) is None and (of.find(first) is not None or longest.default is None):
        longest = first
    return Backoff(_seconds(of, first), _seconds(of, longest))


def retry_backoff(reading: Client, writing: Client) -> Backoff:
    """A partition that is tried again asks both clusters: the longer backoff counts."""
    return Backoff(
        max(_seconds(of, supported.RETRY_BACKOFF) for of in (reading, writing)),
        max(_seconds(of, supported.RETRY_BACKOFF_MAX) for of in (reading, writing)),
    )


def _seconds(of: Client, milliseconds: Setting[int]) -> float:
    return of.get(milliseconds) / 1000
