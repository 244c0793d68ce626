"""Connect's own records, byte for byte: as a worker of Kafka 4.3.1 wrote them."""

import json

import pytest

from heliograph.model.connect_records import (
    PAUSED,
    RUNNING,
    STOPPED,
    Status,
    Stored,
    config_record,
    deleted_records,
    stale_keys,
    state_records,
    status_key,
)

CONFIG = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "name": "x"}
CONFIG_VALUE = b'{"properties":{"connector.class":"org.apache.kafka.connect.mirror.MirrorSourceConnector","name":"x"}}'


def test_configs_and_target_states_are_written_as_connect_does() -> None:
    assert config_record("x", CONFIG) == (b"connector-x", CONFIG_VALUE)
    assert state_records("x", RUNNING) == [(b"target-state-x", b'{"state":"STARTED","state.v2":"STARTED"}')]
    assert state_records("x", PAUSED) == [(b"target-state-x", b'{"state":"PAUSED","state.v2":"PAUSED"}')]
    assert state_records("x", STOPPED) == [
        (b"commit-x", b'{"tasks":0}'),
        (b"target-state-x", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
    ]
    assert deleted_records("x") == [(b"connector-x", None), (b"target-state-x", None)]


def test_a_status_is_written_as_connect_does() -> None:
    value = Status("RUNNING", "127.0.0.1:8083", "4.3.1").to_value()
    assert value == (b'{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":0,"version":"4.3.1"}')
    assert json.loads(Status("FAILED", "w", None, "why").to_value())["trace"] == "why"
    assert (status_key("x"), status_key("x", 1)) == (b"status-connector-x", b"status-task-x-1")


def test_statuses_of_deleted_connectors_get_tombstones() -> None:
    keys = [status_key("x"), status_key("gone"), status_key("gone", 0), b"status-topic-A.t:connector-gone", b"other"]
    assert [key for key, _none in stale_keys(keys, [status_key("x")])] == keys[1:4]


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (b'{"state":"STARTED","state.v2":"STARTED"}', RUNNING),
        (b'{"state":"PAUSED","state.v2":"STOPPED"}', STOPPED),
        (b'{"state":"PAUSED"}', PAUSED),
    ],
)
def test_connectors_that_a_worker_has_stored_are_read(value: bytes, state: str) -> None:
    stored = Stored()
    for key, stored_value in (
        (b"session-key", b'{"key":"c2VjcmV0"}'),
        (b"connector-gone", CONFIG_VALUE),
        (b"connector-x", CONFIG_VALUE),
        (b"task-x-0", CONFIG_VALUE),
        (b"commit-x", b'{"tasks":1}'),
        (b"connector-gone", None),
        (b"target-state-x", value),
    ):
        stored.add(key, stored_value)
    assert (stored.configs, stored.states) == ({"x": CONFIG}, {"x": state})


def test_a_record_that_cannot_be_decoded_raises_an_error() -> None:
    for value in (b"no json", b"{}", b'{"properties":[]}'):
        with pytest.raises(ValueError):
            Stored().add(b"connector-x", value)
