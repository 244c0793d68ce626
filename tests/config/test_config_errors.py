"""Files that cannot be run: one line of text with file, line, key and what to do."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.config import ConfigError, load
from heliograph.config.read.mm2_file import from_properties
from heliograph.config.read.properties import parse
from heliograph.config.resolve.deployment import assemble

from .files import CLUSTERS, MINIMAL, deployment


def error(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        deployment(text)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_cluster_without_an_address_is_named() -> None:
    text = "clusters = A, B\nA.bootstrap.servers = a:1\nA->B.enabled = true\n"
    assert error(text) == (
        "mm2.properties: no B.bootstrap.servers: the cluster B is listed in 'clusters' (line 1) but has no address"
    )


def test_a_flow_with_an_unknown_cluster_is_an_error() -> None:
    assert error(MINIMAL + "\n\nA->C.enabled = true\n") == (
        "mm2.properties:7: A->C.enabled: C is not in 'clusters' (A, B)"
    )
    assert error(MINIMAL + "X->B.enabled = true\n") == "mm2.properties:5: X->B.enabled: X is not in 'clusters' (A, B)"
    assert error(MINIMAL + "A->eu.west.enabled = true\n").startswith(
        "mm2.properties:5: A->eu.west.enabled: eu.west is not in"
    )


def test_other_settings_of_a_flow_with_an_unknown_cluster_are_ignored_with_a_warning() -> None:
    read = deployment(MINIMAL + "X->B.sync.group.offsets.enabled = true\nA->eu.west.topics = x\n")
    assert [str(warning) for warning in read.warnings] == [
        "mm2.properties:5: 'X->B.sync.group.offsets.enabled' is ignored, as by MM2: X is not in 'clusters' (A, B)",
        "mm2.properties:6: 'A->eu.west.topics' is ignored, as by MM2: eu.west is not in 'clusters' (A, B)",
    ]
    assert [flow.name for flow in read.flows] == ["A->B"]


def test_a_flow_with_a_nearly_right_alias_says_which_was_meant() -> None:
    assert error(MINIMAL + "a->B.topics = x\n").endswith("a is not in 'clusters' (A, B); did you mean A?")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CLUSTERS + "A->A.enabled = true\n", "mm2.properties:4: A->A.enabled: source and target are the same cluster"),
        (CLUSTERS + "A -> B.enabled = true\n", "keys must not contain spaces: write 'A->B.enabled = true'"),
        (CLUSTERS + "A-> B.enabled = true\n", "mm2.properties:4: A->: keys must not contain spaces"),
        (CLUSTERS, "No source->target replication flows: set 'A->B.enabled = true'"),
        (CLUSTERS + "A->B.enabled = false\n", "mm2.properties: No source->target replication flows"),
        (
            CLUSTERS + "A->B.enable = true\n",
            "mm2.properties:4: No source->target replication flows: 'A->B.enable' is not a setting, did you mean "
            "'A->B.enabled'?",
        ),
        ("clusters = A\nA.bootstrap.servers = a:1\n", "'clusters' lists A only, write at least two"),
        ("A.bootstrap.servers = a:1\n", "mm2.properties: no clusters: write for example 'clusters = A, B'"),
        ("", "mm2.properties: no clusters"),
        ("clusters =\n", "mm2.properties:1: clusters: '' lists no cluster"),
        ("clusters = A, B, A\n", "mm2.properties:1: clusters: 'A, B, A' lists the cluster A twice"),
        ("clusters = A, B,\n", "has an empty item: remove the extra comma"),
        ("clusters = A B\n", "has the alias 'A B', which has a space: put commas between aliases, as in 'A, B'"),
    ],
)
def test_a_file_without_a_deployment_is_refused(text: str, says: str) -> None:
    assert says in error(text)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("A->B.enabled = yes", "A->B.enabled: 'yes' is neither true nor false"),
        ("tasks.max = 0", "tasks.max: '0' is too small: it must be 1 or more"),
        ("tasks.max = many", "tasks.max: 'many' is not a whole number"),
        ("tasks.max = 1_000", "is not a whole number"),
        ("tasks.max = 2147483648", "is too large: it must be 2147483647 or less"),
        ("tasks.max = 4 # four", "(a comment needs a line of its own)"),
        ("replication.factor = 0", "replication.factor: '0' is too small: it must be -1 or more and not 0"),
        ("replication.factor = 40000", "is too large"),
        ("refresh.topics.interval.seconds = 0", "refresh.topics.interval.seconds: 0 seconds is not an interval"),
        ("replication.policy.class = com.example.Mine", "'com.example.Mine' is the name of a Java class"),
        ("replication.policy.class = MyPolicy", "'MyPolicy' is neither built in (DefaultReplicationPolicy, Identity"),
        ("topic.filter.class = no_such_package.Mine", "cannot be imported: No module named 'no_such_package'"),
        ("replication.policy.separator = /", "'/' cannot be part of a topic name"),
        ("topics = a, (b", "the pattern '(b' cannot be used"),
        ("topics = *", "write '.*' for any name"),
        ("B->A.topics.exclude = [a-z&&b]", "the pattern '[a-z&&b]' cannot be used"),
        ("heliograph.lease.seconds = 0.5", "is out of range: it must be from 1 to 600"),
        ("heliograph.lease.seconds = soon", "is not a number"),
        ("heliograph.buffer.memory = 1000", "is too small: it must be 1048576 or more"),
        ("security.protocol = TLS", "'TLS' is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("A.ssl.truststore.type = BKS", "A.ssl.truststore.type: 'BKS' is not one of JKS, PKCS12, PEM"),
        ("A->B.source.consumer.ssl.protocol = SSLv2", "'SSLv2' is not one of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3"),
        ("ssl.enabled.protocols = TLSv1.2, SSLv3", "has 'SSLv3', which is not one of TLSv1, TLSv1.1"),
        ("ssl.endpoint.identification.algorithm = none", "'none' is neither https nor empty"),
        ("sasl.mechanism = NTLM", "'NTLM' is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"),
        ("A.consumer.fetch.max.bytes = -1", "A.consumer.fetch.max.bytes: '-1' is too small: it must be 0 or more"),
        ("A.bootstrap.servers = host", "A.bootstrap.servers: 'host' has an address without a port: write 'host:9092'"),
        ("A.bootstrap.servers = a:1, b", "has an address without a port: write 'b:9092'"),
        ("A.bootstrap.servers = [::1]", "has an address without a port: write '[::1]:9092'"),
        ("A.bootstrap.servers = fe80::1", "has an IPv6 address without brackets"),
        ("A.bootstrap.servers = a:99999", "has an address with an impossible port: 'a:99999'"),
        ("A.bootstrap.servers = a:port", "has an address that is not host:port: 'a:port'"),
        ("A.bootstrap.servers =", "holds no address"),
        ("topics = \\users.*", "is not a character: write four hexadecimal digits after \\u"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_line(line: str, says: str) -> None:
    message = error(MINIMAL + line + "\n")
    assert message.startswith("mm2.properties:5: ")
    assert says in message


def test_a_bad_value_of_a_disabled_flow_is_an_error_too() -> None:
    assert error(MINIMAL + "B->A.tasks.max = none\n").startswith("mm2.properties:5: B->A.tasks.max: ")


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        deployment(text)
    assert str(raised.value).splitlines() == list(raised.value.errors)
    return list(raised.value.errors)


def test_all_bad_values_are_reported_in_the_order_of_the_file() -> None:
    assert errors(MINIMAL + "tasks.max = x\nA->B.enabled = y\nB->A.topics = (\n") == [
        "mm2.properties:5: tasks.max: 'x' is not a whole number",
        "mm2.properties:6: A->B.enabled: 'y' is neither true nor false",
        "mm2.properties:7: B->A.topics: '(' is not a list of regular expressions: the pattern '(' cannot be used: a "
        "'(' has no ')'",
    ]


def test_all_keys_that_cannot_be_split_are_reported() -> None:
    assert errors(MINIMAL + "A->b.topics = x\nA -> B.topics = x\nA->A.topics = x\n") == [
        "mm2.properties:5: A->b.topics: b is not in 'clusters' (A, B); did you mean B?",
        "mm2.properties:6: A: keys must not contain spaces: write 'A->B.enabled = true'",
        "mm2.properties:7: A->A.topics: source and target are the same cluster",
    ]


def test_all_that_keeps_flows_from_running_is_reported_once() -> None:
    text = "clusters = A, B, C\nA.bootstrap.servers = a:1\nenabled = true\nrefresh.topics.interval.seconds = 0\n"
    assert errors(text + "topic.filter.class = config.own_classes.HalfAPolicy\n") == [
        "mm2.properties: no B.bootstrap.servers: the cluster B is listed in 'clusters' (line 1) but has no address",
        "mm2.properties: no C.bootstrap.servers: the cluster C is listed in 'clusters' (line 1) but has no address",
        "mm2.properties:5: topic.filter.class: 'config.own_classes.HalfAPolicy' is not a filter: it has no matches()",
        "mm2.properties:4: refresh.topics.interval.seconds: 0 seconds is not an interval: set refresh.topics.enabled = "
        "false to disable it",
    ]


def test_an_error_carries_the_warnings_that_may_explain_it() -> None:
    with pytest.raises(ConfigError) as raised:
        deployment("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.server = b:1\nA->B.enabled = true\n")
    assert [str(warning) for warning in raised.value.warnings] == [
        "mm2.properties:3: unknown setting 'B.bootstrap.server': did you mean 'B.bootstrap.servers'?"
    ]


def test_a_file_that_is_not_there_or_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties: there is no such file"):
        load(tmp_path / "nowhere.properties")
    with pytest.raises(ConfigError, match=r"no file in this directory ends in \.json, \.yaml, \.yml"):
        load(tmp_path)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["clusters", "A.", "A->B.", "->", "A->", "eu.", "${env:X}", "topics", "consumer.", ".", ""]
            ),
            st.text(max_size=12),
            st.sampled_from(["", "A, B", "true", "h:1", ".*", "${env:X}", "\\", "\\u00", "#", "->"]),
        ),
        max_size=8,
    )
)
def test_any_file_gives_a_deployment_or_an_error(lines: list[tuple[str, str, str]]) -> None:
    text = MINIMAL + "".join(f"{start}{middle} = {value}\n" for start, middle, value in lines)
    with suppress(ConfigError):
        assemble(from_properties("f", parse(text.encode("utf-8", "replace"), "f")))
