"""Creating and changing topics."""

from heliograph.wire.topic_requests import NewTopic, _chunks
from logs import Pair


def test_requests_stay_below_the_limit_of_a_controller() -> None:
    weights = [1, 4999, 1, 3000, 2001, 7000, 1]
    chunks = list(_chunks(weights, lambda weight: weight))
    assert chunks == [[1, 4999], [1, 3000], [2001], [7000], [1]]
    assert list(_chunks([], lambda weight: weight)) == []


def test_more_topics_than_fit_into_one_request_are_created(pair: Pair, topic: str) -> None:
    """The controller takes 10 000 entries in its log at once: a topic, a partition and a setting are one each."""
    settings = {
        "cleanup.policy": "delete",
        "delete.retention.ms": "1",
        "file.delete.delay.ms": "1",
        "flush.messages": "1000",
        "flush.ms": "1000",
        "index.interval.bytes": "4096",
        "max.compaction.lag.ms": "100000",
        "max.message.bytes": "1000000",
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "1",
        "min.insync.replicas": "1",
        "preallocate": "false",
        "retention.bytes": "1000000",
        "retention.ms": "100000",
        "segment.bytes": "1048576",
        "segment.index.bytes": "4096",
        "segment.jitter.ms": "0",
        "segment.ms": "100000",
        "unclean.leader.election.enable": "false",
    }
    new = [NewTopic(f"{topic[:20]}-{number}", 1, 1, tuple(settings.items())) for number in range(470)]
    outcome = pair.b.create_and_delete(new)
    assert set(outcome.values()) == {None}
