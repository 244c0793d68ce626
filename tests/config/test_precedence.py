"""Which of several values counts: MirrorMaker 2's order, also where it surprises."""

from __future__ import annotations

import pytest

from .files import MINIMAL, deployment, flow, patterns, warnings


def test_a_flows_own_value_wins_over_the_top_level() -> None:
    assert patterns(flow("topics = x\nA->B.topics = y\n").topics).include == ("y",)
    assert flow("A->B.tasks.max = 3\ntasks.max = 2\n").tasks_max == 3
    assert flow("B->A.tasks.max = 3\ntasks.max = 2\n").tasks_max == 2


def test_a_consumer_setting_of_the_source_cluster_wins_over_the_flows() -> None:
    both = "A.consumer.fetch.max.bytes = 1\nA->B.consumer.fetch.max.bytes = 2\n"
    assert flow(both).reading.fetch_max_bytes == 1
    assert warnings(both) == [
        "mm2.properties:6: 'A->B.consumer.fetch.max.bytes' loses to 'A.consumer.fetch.max.bytes' in line 5, "
        "as with MM2: write 'A->B.source.consumer.fetch.max.bytes' to win"
    ]
    assert flow("A->B.consumer.fetch.max.bytes = 2\n").reading.fetch_max_bytes == 2
    assert flow(both + "A->B.source.consumer.fetch.max.bytes = 3\n").reading.fetch_max_bytes == 3


def test_a_consumer_setting_of_the_target_or_of_the_top_level_is_not_read() -> None:
    assert flow("B.consumer.fetch.max.bytes = 1\n").reading.fetch_max_bytes == 52428800
    assert flow("consumer.fetch.max.bytes = 1\n").reading.fetch_max_bytes == 52428800
    assert "has no effect: fetch.max.bytes is read from" in warnings("consumer.fetch.max.bytes = 1\n")[0]


def test_records_are_written_by_the_targets_producer_or_the_flows_override() -> None:
    assert flow("B.producer.max.request.size = 1\n").writing.max_request_size == 1
    assert flow("A.producer.max.request.size = 1\n").writing.max_request_size == 4 * 1048576
    both = "B.producer.max.request.size = 1\nA->B.producer.override.max.request.size = 2\n"
    assert flow(both).writing.max_request_size == 2


def test_a_flows_plain_producer_setting_is_for_offset_syncs_only_and_warned_about() -> None:
    added = "A->B.producer.max.request.size = 2\n"
    assert flow(added).writing.max_request_size == 4 * 1048576
    assert warnings(added) == [
        "mm2.properties:5: 'A->B.producer.max.request.size' has no effect: max.request.size is read from "
        "'A->B.producer.override.max.request.size' or 'B.producer.max.request.size'"
    ]


def test_name_and_timeout_of_a_client_fall_back_to_the_cluster_then_to_the_top_level() -> None:
    everywhere = flow("client.id = us\nrequest.timeout.ms = 1000\n")
    assert (everywhere.source.client_id, everywhere.target.client_id) == ("us", "us")
    assert (everywhere.source.request_timeout, everywhere.writing.request_timeout) == (1.0, 1.0)
    finer = flow("client.id = us\nB.client.id = b\nA->B.target.admin.client.id = c\nrequest.timeout.ms = 1000\n")
    assert (finer.source.client_id, finer.target.client_id) == ("us", "c")
    clusters = deployment_of_ids("client.id = us\nB.client.id = b\nA.admin.client.id = admin\n")
    assert clusters == {"A": "admin", "B": "b"}


def deployment_of_ids(added: str) -> dict[str, str]:
    return {alias: cluster.client_id for alias, cluster in deployment(MINIMAL + added).clusters.items()}


@pytest.mark.parametrize(
    ("old", "new"),
    [("topics.blacklist", "topics.exclude"), ("config.properties.blacklist", "config.properties.exclude")],
)
def test_an_old_name_works_with_a_warning_that_names_the_new_one(old: str, new: str) -> None:
    for scope in ("", "A->B."):
        read = flow(f"{scope}{old} = x\n")
        assert "x" in (
            patterns(read.topics).exclude if new == "topics.exclude" else patterns(read.topic_sync.exclude).include
        )
        assert warnings(f"{scope}{old} = x\n") == [
            f"mm2.properties:5: '{scope}{old}' is an old name: write '{scope}{new}'"
        ]


def test_the_new_name_wins_over_the_old_one_with_a_warning() -> None:
    added = "topics.exclude = new\ntopics.blacklist = old\n"
    assert patterns(flow(added).topics).exclude == ("new",)
    assert warnings(added) == [
        "mm2.properties:6: 'topics.blacklist' is ignored: "
        "it is the old name of 'topics.exclude', which is set in line 5"
    ]


def test_the_new_name_at_top_level_wins_even_over_the_flows_old_name() -> None:
    added = "A->B.topics.blacklist = old\ntopics.exclude = new\n"
    assert patterns(flow(added).topics).exclude == ("new",)
    assert "is ignored" in warnings(added)[0]


def test_the_last_value_of_a_repeated_key_wins_with_a_warning_that_names_both_lines() -> None:
    added = "topics = one\ntasks.max = 2\ntopics = two\n"
    assert patterns(flow(added).topics).include == ("two",)
    assert warnings(added) == ["mm2.properties:7: 'topics' is set again: this value replaces the one in line 5"]
