"""Errors of requests to brokers, by what the caller should do.

Codes that callers act on have a name here; of all others only whether they are transient matters.
"""

import re

import kafka.errors as kafka_errors

# How a broker prints a request that is not authorized: with memory addresses, different ones each time.
_REQUEST = re.compile(r"^Request Request\(.*\) ", re.DOTALL)


class WireError(Exception):
    """A request failed."""


class Unreachable(WireError):
    """A broker or cluster cannot be reached: connection refused, timeout, disconnect, or not a Kafka broker."""


class Fenced(WireError):
    """The request was not sent: another process may do by now what it was for."""


class BrokerError(WireError):
    """A broker answered with an error code."""

    def __init__(self, code: int, detail: str | None = None) -> None:
        self.code = code
        self.name = error_name(code)
        self.detail = detail and _REQUEST.sub("", detail)
        super().__init__(f"{self.name}: {self.detail}" if self.detail else self.name)

    @property
    def forbidden(self) -> bool:
        return self.code in _FORBIDDEN

    @property
    def transient(self) -> bool:
        return self.code in TRANSIENT


def error_name(code: int) -> str:
    """The protocol's own name of an error code, e.g. MESSAGE_TOO_LARGE."""
    name = _RENAMED.get(code) or str(getattr(kafka_errors.for_code(code), "message", "UNKNOWN"))
    return f"error {code}" if name == "UNKNOWN" else name


def missing_right(code: int, right: str, resource: str) -> str | None:
    """The detail of an authorization error: what must be allowed, and on what; None for other errors."""
    return f"the right {right} on {resource} is missing" if code in _FORBIDDEN else None


def lacking(code: int, right: str) -> str:
    """Text to append to an authorization error: the operation that must be allowed; empty for other errors."""
    return f" (the right {right} is missing)" if code in _FORBIDDEN else ""


# Where kafka-python still uses the name of an earlier release.
_RENAMED = {6: "NOT_LEADER_OR_FOLLOWER", 10: "MESSAGE_TOO_LARGE", 17: "INVALID_TOPIC_EXCEPTION"}


OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
COORDINATOR_LOAD_IN_PROGRESS = 14
RECORD_LIST_TOO_LARGE = 18
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_TIMESTAMP = 32
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_CONFIG = 40
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
UNSUPPORTED_COMPRESSION_TYPE = 76
MEMBER_ID_REQUIRED = 79
INVALID_RECORD = 87
UNKNOWN_TOPIC_ID = 100
INCONSISTENT_TOPIC_ID = 103
FETCH_SESSION_TOPIC_ID_ERROR = 106

COORDINATOR_MOVES = frozenset({COORDINATOR_LOAD_IN_PROGRESS, 15, 16})  # 15 not available, 16 another broker's now
_FORBIDDEN = frozenset(
    {
        TOPIC_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED,
        CLUSTER_AUTHORIZATION_FAILED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

# Errors that a retry with fresh metadata resolves: leaders move, replicas catch up, coordinators load.
TRANSIENT = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        5,  # LEADER_NOT_AVAILABLE
        6,  # NOT_LEADER_OR_FOLLOWER
        7,  # REQUEST_TIMED_OUT
        8,  # BROKER_NOT_AVAILABLE
        9,  # REPLICA_NOT_AVAILABLE
        13,  # NETWORK_EXCEPTION
        *COORDINATOR_MOVES,
        19,  # NOT_ENOUGH_REPLICAS
        20,  # NOT_ENOUGH_REPLICAS_AFTER_APPEND
        41,  # NOT_CONTROLLER
        56,  # KAFKA_STORAGE_ERROR
        FETCH_SESSION_ID_NOT_FOUND,
        INVALID_FETCH_SESSION_EPOCH,
        72,  # LISTENER_NOT_FOUND
        74,  # FENCED_LEADER_EPOCH
        75,  # UNKNOWN_LEADER_EPOCH
        78,  # OFFSET_NOT_AVAILABLE
        83,  # ELIGIBLE_LEADERS_NOT_AVAILABLE
        89,  # THROTTLING_QUOTA_EXCEEDED
        UNKNOWN_TOPIC_ID,
        INCONSISTENT_TOPIC_ID,
    }
)
