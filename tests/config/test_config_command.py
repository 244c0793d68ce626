"""`heliograph config`: what it prints, and its exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from heliograph.cli import app
from heliograph.config import load
from heliograph.config.read.formats import read_all
from heliograph.model.flow import ConnectOffsets

from .files import MINIMAL

FILE = (
    MINIMAL
    + """\
A->B.topics = orders, payments.*
topics = x
topics = .*
A.consumer.fetch.max.bytes = 10485760
A->B.consumer.fetch.max.bytes = 1048576
A.sasl.jaas.config = hush-1
A->B.source.consumer.ssl.keystore.password = hush-2
ssl.key.password = hush-3
A->B.source.cluster.ssl.truststore.password = hush-4
A->B.topic.filter.class = config.own_classes.Short
A->B.my.api.key = hush-5
A->B.my.access.token = hush-6
"""
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["config", *map(str, arguments)])


def test_clusters_and_flows_are_shown_as_they_would_run(file: Path) -> None:
    shown = command(file)
    assert shown.exit_code == 0
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "A: a:9092" in lines
    assert "A->B: copies records, translates group offsets, writes heartbeats" in lines
    assert "topics: by config.own_classes.Short" in lines
    assert "mirror of 'x': 'A.x', by DefaultReplicationPolicy, separator '.'" in lines
    assert "groups: .*; but not console-consumer-.*, connect-.*, __.*" in lines
    assert "checkpoints: every 60 s" in lines
    assert "B->A: writes heartbeats only, every 1 s" in lines


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--json",),
        ("--explain", "sasl.jaas.config"),
        ("--explain", "A->B.source.consumer.ssl.keystore.password"),
        ("--explain", "ssl.key.password"),
        ("--explain", "source.cluster.ssl.truststore.password", "--json"),
    ],
)
def test_no_secret_is_ever_shown(file: Path, options: tuple[str, ...]) -> None:
    shown = command(file, *options)
    assert shown.exit_code == 0, shown.output
    assert "hush" not in shown.output
    assert "[hidden]" in shown.output


def test_a_secret_of_a_provider_is_not_resolved_to_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hush")
    providers = (
        "config.providers = env\nconfig.providers.env.class = "
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    )
    file = tmp_path / "mm2.properties"
    file.write_text(MINIMAL + providers + "A.ssl.key.password = ${env:SECRET}\nA->B.topics = ${env:SECRET}\n")
    for options in ((), ("--json",), ("--explain", "ssl.key.password")):
        assert "[hidden]" in command(file, *options).stdout
    assert "${env:SECRET}" in command(file, "--explain", "topics").stdout
    for form in ("properties", "connect", "strimzi"):
        converted = command(file, "--to", form)
        assert "hush" not in converted.output
        assert converted.stdout.count("${env:SECRET}") >= 2
        assert "is a literal secret" not in converted.stderr


def test_json_has_all_values(file: Path) -> None:
    shown = json.loads(command(file, "--json").stdout)
    assert shown["clusters"]["A"]["bootstrap_servers"] == ["a:9092"]
    assert shown["clusters"]["A"]["settings"]["consumer.fetch.max.bytes"] == "10485760"
    (flow,) = shown["flows"]
    assert (flow["name"], flow["parts"]) == ("A->B", ["checkpoint", "heartbeat", "source"])
    assert flow["policy"] == {"class": "DefaultReplicationPolicy", "separator": ".", "internal_separator": None}
    assert flow["topics"] == {"class": "config.own_classes.Short"}
    assert [beat["name"] for beat in shown["beats"]] == ["B->A"]


def test_an_address_that_is_not_on_this_machine_is_shown_as_it_is_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_HERE", raising=False)
    file.write_text(MINIMAL + "config.providers = env\nA.bootstrap.servers = ${env:NOT_HERE}\n")
    shown = command(file)
    assert shown.exit_code == 0
    assert "  A: ${env:NOT_HERE}\n  B: b:9092\n" in shown.stdout
    assert shown.stderr.replace(str(file), "F") == (
        "warning: F:6: 'A.bootstrap.servers' is set again: this value replaces the one in line 2\n"
        "warning: F:6: A.bootstrap.servers: ${env:NOT_HERE} is not resolved: the environment variable NOT_HERE is not "
        "set\n"
    )
    for options in (("--json",), ("--to", "connect"), ("--explain", "A.bootstrap.servers")):
        assert command(file, *options).exit_code == 0


def test_settings_without_effect_are_counted_and_listed_on_request(file: Path) -> None:
    file.write_text(MINIMAL + "B.producer.acks = 1\nB.producer.linger.ms = 7\nB.plugin.path = /plugins\n")
    assert command(file).stderr == "note: 2 settings have no effect here: --verbose says which, and why\n"
    for option in ("-v", "--verbose"):
        lines = command(file, option).stderr.splitlines()
        assert [line.replace(str(file), "F").split(" is ignored")[0] for line in lines] == [
            "note: F:5: B.producer.acks",
            "note: F:6: B.producer.linger.ms",
        ]
    assert len(json.loads(command(file, "--json").stdout)["notes"]) == 3


def test_only_settings_of_a_cluster_that_have_an_effect_are_shown(file: Path) -> None:
    file.write_text(MINIMAL + "A.client.id = mirror\nB.plugin.path = /plugins\nB.replicas = 3\n")
    shown = command(file).stdout
    assert "  A: a:9092\n    client.id = mirror\n  B: b:9092\n\n" in shown


def test_a_value_is_explained_with_its_line_and_the_values_it_overrides(file: Path) -> None:
    assert command(file, "--explain", "topics").stdout.replace(str(file), "F") == (
        "topics: Topics to copy.\n"
        "Read from: A->B.topics, topics (first wins)\n"
        "\n"
        "A->B: orders, payments.*\n"
        "    from F:5, A->B.topics\n"
        "    wins over .*, from F:7, topics\n"
        "    wins over x, from F:6, topics\n"
        "\n"
        "B->A, which writes heartbeats only: .*\n"
        "    from F:7, topics\n"
        "    wins over x, from F:6, topics\n"
    )


def test_one_flow_or_client_can_be_asked_for(file: Path) -> None:
    single = command(file, "--explain", "A->B.tasks.max").stdout
    assert "A->B: 1\n    the default\n" in single
    assert "B->A" not in single
    client = command(file, "--explain", "consumer.fetch.max.bytes").stdout.replace(str(file), "F")
    assert (
        "A->B: 10485760\n"
        "    from F:8, A.consumer.fetch.max.bytes\n"
        "    wins over 1048576, from F:9, A->B.consumer.fetch.max.bytes\n"
    ) in client
    assert (
        command(file, "--explain", "fetch.max.bytes").stdout.splitlines()[1:]
        == command(file, "--explain", "consumer.fetch.max.bytes").stdout.splitlines()[1:]
    )
    cluster = command(file, "--explain", "bootstrap.servers").stdout.replace(str(file), "F")
    assert "A: a:9092\n    from F:2, A.bootstrap.servers\n" in cluster
    assert "B: b:9092\n" in cluster
    assert "A: b" not in command(file, "--explain", "B.bootstrap.servers").stdout


def test_explaining_says_what_has_no_effect(file: Path) -> None:
    assert "It has no effect: nothing is polled" in command(file, "--explain", "consumer.poll.timeout.ms").stdout
    assert "A->B: not set, and there is no default" in command(file, "--explain", "transforms.one.type").stdout


def test_an_explanation_can_be_json(file: Path) -> None:
    shown = json.loads(command(file, "--explain", "A->B.topics", "--json").stdout)
    assert shown["origins"][0]["value"] == {
        "value": "orders, payments.*",
        "place": f"{file}:5",
        "written": "A->B.topics",
    }


def test_other_formats_are_explained_in_their_own_words(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(command(file, "--to", "connect").stdout)
    explained = command(other, "--explain", "A->B.topics").stdout
    assert f"from {other}:" in explained
    assert ", connector A->B.MirrorSourceConnector: topics\n" in explained
    other = tmp_path / "other.yaml"
    other.write_text(command(file, "--to", "strimzi").stdout)
    assert ", spec.mirrors[0].topicsPattern\n" in command(other, "--explain", "A->B.topics").stdout


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("topcs", "unknown setting 'topcs': did you mean 'topics'?"),
        ("A->B.topics.whitelist", "did you mean 'topics'? (it belongs to MirrorMaker 1)"),
        ("consumer.fetch.max.byte", "did you mean 'consumer.fetch.max.bytes'?"),
        ("qqqqqq", "there is no such setting"),
        ("message.max.bytes", "it is a setting of brokers"),
        ("A->C.topics", "C is not one of the clusters A, B"),
    ],
)
def test_an_unknown_key_exits_with_status_2_and_the_most_similar_name(file: Path, key: str, says: str) -> None:
    shown = command(file, "--explain", key)
    assert shown.exit_code == 2
    assert says in shown.stderr


def test_bad_input_exits_with_status_2(tmp_path: Path, file: Path) -> None:
    for path in (tmp_path / "nowhere.properties", tmp_path / "nowhere.json", tmp_path / "nowhere.yaml"):
        shown = command(path)
        assert (shown.exit_code, "there is no such file" in shown.stderr) == (2, True)
    assert command(file, "--to", "xml").exit_code == 2
    assert command(file, "--to", "connect", "--explain", "topics").exit_code == 2
    file.write_text(MINIMAL + "A->B.topcs = x\ntasks.max = x\n")
    shown = command(file)
    assert shown.exit_code == 2
    assert "warning: " in shown.stderr
    assert "tasks.max: 'x' is not a whole number" in shown.stderr


@pytest.mark.parametrize(("form", "ending"), [("properties", "properties"), ("connect", "json"), ("strimzi", "yaml")])
def test_what_is_converted_can_be_read_again(file: Path, tmp_path: Path, form: str, ending: str) -> None:
    file.write_text(MINIMAL + "A->B.topics = orders\n")
    converted = command(file, "--to", form)
    assert converted.exit_code == 0
    other = tmp_path / f"other.{ending}"
    other.write_text(converted.stdout)
    # Strimzi's MM2 stores its offsets elsewhere.
    offsets = ConnectOffsets()
    assert [replace(flow, connect_offsets=offsets) for flow in load(other).flows] == list(load(file).flows)


@pytest.mark.parametrize(("form", "ending"), [("properties", "properties"), ("connect", "json"), ("strimzi", "yaml")])
def test_a_literal_secret_is_converted_to_a_reference_with_a_note(
    file: Path, tmp_path: Path, form: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = command(file, "--to", form)
    assert converted.exit_code == 0
    assert "hush" not in converted.output
    assert "[hidden]" not in converted.output
    for key, variable in {
        "A.sasl.jaas.config": "A_SASL_JAAS_CONFIG",
        "A->B.source.consumer.ssl.keystore.password": "A_B_SOURCE_CONSUMER_SSL_KEYSTORE_PASSWORD",
        "ssl.key.password": "SSL_KEY_PASSWORD",
        "A->B.source.cluster.ssl.truststore.password": "A_B_SOURCE_CLUSTER_SSL_TRUSTSTORE_PASSWORD",
        "A->B.my.api.key": "A_B_MY_API_KEY",
        "A->B.my.access.token": "A_B_MY_ACCESS_TOKEN",
    }.items():
        assert f": {key} is a literal secret and not printed: set the environment variable {variable}," in (
            converted.stderr
        )
        assert f"${{env:{variable}}}" in converted.stdout
        monkeypatch.setenv(variable, f"value of {variable}")
    other = tmp_path / f"other.{ending}"
    other.write_text(converted.stdout)
    # The references can be resolved: a user's own class gets what the variables hold.
    settings = read_all([other]).of_flow("A", "B")
    assert settings["my.api.key"] == "value of A_B_MY_API_KEY"


def test_a_login_that_refers_to_its_password_is_converted_as_it_is(file: Path) -> None:
    login = 'Module required username="me" password="${env:PW}";'
    file.write_text(
        MINIMAL + f'A.sasl.jaas.config = {login}\nB.sasl.jaas.config = Module password="hush ${{env:X}}";\n'
    )
    converted = command(file, "--to", "properties")
    assert f"A.sasl.jaas.config = {login}\n" in converted.stdout
    assert "hush" not in converted.output
    assert "B.sasl.jaas.config is a literal secret" in converted.stderr


def test_several_files_are_one_deployment(tmp_path: Path, file: Path) -> None:
    listed = json.loads(command(file, "--to", "connect").stdout)
    paths = []
    for number, connector in enumerate(listed):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(connector))
    assert "A->B: copies records, translates group offsets, writes heartbeats" in command(*paths).stdout


def test_help_has_an_example() -> None:
    assert "heliograph config mm2.properties --explain topics" in command("--help").stdout


@pytest.mark.parametrize("name", ["run", "status"])
def test_other_commands_take_the_same_files(name: str, tmp_path: Path) -> None:
    bad = tmp_path / "x.json"
    bad.write_text("[]")
    shown = CliRunner().invoke(app, [name, str(bad)])
    assert (shown.exit_code, "there is none of MirrorMaker 2's connectors in it" in shown.stderr) == (2, True)


def test_what_is_disabled_is_shown_in_one_word(file: Path) -> None:
    file.write_text(MINIMAL + "sync.topic.configs.enabled = false\noffset.lag.max = 0\nreplication.factor = 1\n")
    lines = [" ".join(line.split()) for line in command(file).stdout.splitlines()]
    assert {"topic settings: never", "offset syncs: to A, as often as possible", "new mirrors: 1 replica"} <= set(lines)
