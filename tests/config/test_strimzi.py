"""Strimzi's resource in its two versions: the same flows as an mm2.properties, and no field passed over in silence."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.config import ConfigError, Deployment, load
from heliograph.config.read.formats import read_all
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, ConnectOffsets, Flow
from heliograph.model.secret import Secret
from heliograph.model.security import KeyStore, OAuthLogin, PasswordLogin, Sasl, Security, Tls, TrustStore

from .files import deployment as properties
from .files import patterns

V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: east-to-west
spec:
  target:
    alias: B
    bootstrapServers: b:9092
  mirrors:
    - source:
        alias: A
        bootstrapServers: a:9092
      sourceConnector: {}
"""
V1BETA2 = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: east-to-west
spec:
  version: 3.9.0
  replicas: 2
  connectCluster: B
  clusters:
    - alias: A
      bootstrapServers: a:9092
    - alias: B
      bootstrapServers: b:9092
      config:
        config.storage.replication.factor: -1
        producer.max.request.size: 2000000
  mirrors:
    - sourceCluster: A
      targetCluster: B
      sourceConnector:
        tasksMax: 3
        autoRestart:
          enabled: true
        config:
          replication.factor: -1
          sync.topic.acls.enabled: "false"
          source.consumer.fetch.min.bytes: 10
      checkpointConnector:
        config:
          sync.group.offsets.enabled: true
          checkpoints.topic.replication.factor: 1
      heartbeatConnector:
        config:
          heartbeats.topic.replication.factor: 1
      topicsPattern: "orders|customers.*"
      topicsBlacklistPattern: ".*[.]tmp"
      groupsPattern: "shop-.*"
      groupsExcludePattern: "shop-test"
"""
SAME = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
B.producer.max.request.size = 2000000
A->B.enabled = true
A->B.tasks.max = 3
A->B.replication.factor = -1
A->B.sync.topic.acls.enabled = false
A->B.source.consumer.fetch.min.bytes = 10
A->B.sync.group.offsets.enabled = true
A->B.checkpoints.topic.replication.factor = 1
A->B.heartbeats.topic.replication.factor = 1
A->B.topics = orders|customers.*
A->B.topics.exclude = .*[.]tmp
A->B.groups = shop-.*
A->B.groups.exclude = shop-test
"""
# Where Strimzi's workers store their state.
STATE = ConnectOffsets(
    "mirrormaker2-cluster-offsets",
    "A->B.MirrorSourceConnector",
    "mirrormaker2-cluster",
    "mirrormaker2-cluster-status",
)


def read(tmp_path: Path, text: str, name: str = "mm2.yaml") -> Deployment:
    file = tmp_path / name
    file.write_text(text)
    return load(file)


def error(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    assert "\n" not in str(raised.value)
    return str(raised.value).replace(f"{tmp_path}/", "")


def texts(tmp_path: Path, notices: tuple[object, ...]) -> list[str]:
    return [str(notice).replace(f"{tmp_path}/", "") for notice in notices]


def test_a_v1_resource_with_a_source_connector_alone(tmp_path: Path) -> None:
    deployment = read(tmp_path, V1)
    (flow,) = deployment.flows
    (bare,) = properties(SAME[: SAME.index("B.producer")] + "A->B.enabled = true\n").flows
    assert flow == Flow(bare.source, bare.target, frozenset({SOURCE}), connect_offsets=STATE)
    assert (deployment.heartbeat_only_flows, deployment.warnings, deployment.notes) == ((), (), ())


def test_a_v1beta2_resource_is_the_same_as_its_mm2_properties(tmp_path: Path) -> None:
    deployment = read(tmp_path, V1BETA2)
    assert deployment.flows == tuple(replace(flow, connect_offsets=STATE) for flow in properties(SAME).flows)
    assert deployment.flows[0].parts == {SOURCE, CHECKPOINT, HEARTBEAT}
    assert deployment.heartbeat_only_flows == ()
    assert texts(tmp_path, deployment.warnings) == [
        "mm2.yaml:36: 'spec.mirrors[0].topicsBlacklistPattern' is an old name: write "
        "'spec.mirrors[0].topicsExcludePattern'"
    ]
    assert texts(tmp_path, deployment.notes) == [
        "mm2.yaml:6: spec.version is ignored: Heliograph does not run Kafka Connect",
        "mm2.yaml:7: spec.replicas is ignored: Spark's executors do the work: see --master and --conf",
        "mm2.yaml:15: spec.clusters[1].config.config.storage.replication.factor is ignored: only `heliograph serve` "
        "stores its state in such topics, and it reads them from the worker's file",
    ]


def test_a_resource_may_be_json_as_kubectl_prints_it(tmp_path: Path) -> None:
    resource = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "spec": {
            "target": {"alias": "B", "bootstrapServers": "b:9092"},
            "mirrors": [{"source": {"alias": "A", "bootstrapServers": "a:9092"}, "sourceConnector": {}}],
        },
    }
    assert read(tmp_path, json.dumps(resource), "one.json").flows == read(tmp_path, V1).flows
    both = {"apiVersion": "v1", "kind": "List", "items": [resource]}
    assert read(tmp_path, json.dumps(both), "list.json").flows == read(tmp_path, V1).flows


def test_several_documents_make_one_deployment(tmp_path: Path) -> None:
    back = V1.replace("alias: A", "alias: X").replace("alias: B", "alias: A").replace("alias: X", "alias: B")
    back = back.replace("a:9092", "x:9092").replace("b:9092", "a:9092").replace("x:9092", "b:9092")
    user = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata:\n  name: me\n"
    deployment = read(tmp_path, f"{V1}---\n{back}---\n{user}")
    assert [flow.name for flow in deployment.flows] == ["A->B", "B->A"]
    assert [note.text for note in deployment.notes] == ["a resource of kind KafkaUser is ignored"]


def test_a_source_clusters_settings_for_clients_are_its_own(tmp_path: Path) -> None:
    text = V1.replace(
        "        bootstrapServers: a:9092\n", "        bootstrapServers: a:9092\n        config: {ssl.provider: x}\n"
    )
    deployment = read(tmp_path, text)
    assert texts(tmp_path, deployment.notes) == [
        "mm2.yaml:13: spec.mirrors[0].source.config.ssl.provider is ignored: it selects an implementation in Java"
    ]


@pytest.mark.parametrize(
    ("added", "says"),
    [
        ("  jvmOptions: {}\n", "spec.jvmOptions is ignored: memory and cores are Spark's"),
        ("  template: {pod: {}}\n", "spec.template is ignored: it is about Strimzi's pods"),
        (
            "  metricsConfig: {type: jmxPrometheusExporter}\n",
            "spec.metricsConfig is ignored: Heliograph serves its metrics",
        ),
        ("  rack: {topologyKey: zone}\n", "spec.rack is ignored: Strimzi reads the rack from the node"),
    ],
)
def test_fields_about_pods_are_noted(tmp_path: Path, added: str, says: str) -> None:
    (note,) = read(tmp_path, V1 + added).notes
    assert says in str(note)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (V1 + "  replica: 3\n", "mm2.yaml:14: unknown field 'spec.replica': did you mean 'spec.replicas'?"),
        (V1 + "      topicPattern: x\n", "did you mean 'spec.mirrors[0].topicsPattern'?"),
        (V1.replace("alias: B", "alias: B\n    groupID: x"), "did you mean 'spec.target.groupId'?"),
        (
            V1.replace("sourceConnector: {}", "sourceConnector: {taskMax: 3}"),
            "unknown field 'spec.mirrors[0].sourceConnector.taskMax': did you mean",
        ),
        (
            V1.replace("sourceConnector: {}", "sourceConnector: {config: {topcs: x}}"),
            "mm2.yaml:13: unknown setting 'spec.mirrors[0].sourceConnector.config.topcs': did you mean "
            "'spec.mirrors[0].sourceConnector.config.topics'?",
        ),
        (V1 + "frobnicate: 1\n", "unknown field 'frobnicate': it is ignored"),
    ],
)
def test_unknown_fields_are_warned_about_with_the_most_similar_name(tmp_path: Path, text: str, says: str) -> None:
    (warning,) = texts(tmp_path, read(tmp_path, text).warnings)
    assert says in warning


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (V1.replace("io/v1", "io/v7"), "mm2.yaml:1: apiVersion: 'kafka.strimzi.io/v7' is not one of"),
        (V1.replace("alias: A", "alias: B"), "spec.mirrors[0]: source and target are the same cluster B"),
        (V1.replace("bootstrapServers: b:9092", ""), "no spec.target.bootstrapServers"),
        (
            V1.replace("bootstrapServers: b:9092", "bootstrapServers: b"),
            "mm2.yaml:8: spec.target.bootstrapServers: 'b' has an address without a port",
        ),
        (
            V1.replace("sourceConnector: {}", "sourceConnector: {tasksMax: many}"),
            "mm2.yaml:13: spec.mirrors[0].sourceConnector.tasksMax: 'many' is not a whole number",
        ),
        (V1.replace("sourceConnector: {}", "sourceConnector: {state: off}"), "state: 'off' is not one of running"),
        (
            V1 + "      topicsPattern: '(a'\n",
            "mm2.yaml:14: spec.mirrors[0].topicsPattern: '(a' is not a list of regular",
        ),
        (V1BETA2.replace("sourceCluster: A", "sourceCluster: C"), "sourceCluster: 'C' is not in spec.clusters (A, B)"),
        (V1BETA2.replace("connectCluster: B", "connectCluster: C"), "spec.connectCluster: 'C' is not in spec.clusters"),
        (V1.replace("      sourceConnector: {}\n", ""), "no KafkaMirrorMaker2 with a connector is in it"),
        (V1[: V1.index("  mirrors")], "spec.mirrors: there is no mirror"),
        ("kind: Kafka\napiVersion: x\n", "no KafkaMirrorMaker2 with a connector is in it"),
        ("a: [b\n", "this is not YAML: "),
        ("a: !!python/object:os.system x\n", "no connector.class: this is not a connector"),
    ],
)
def test_an_error_names_its_field(tmp_path: Path, text: str, says: str) -> None:
    assert says in error(tmp_path, text)


SECURE = """\
tls:
  trustedCertificates:
    - secretName: a-ca
      pattern: "*.crt"
authentication:
  type: scram-sha-512
  username: mirror
  passwordSecret: {secretName: a-user, password: password}
"""


def secure(tmp_path: Path, text: str) -> tuple[dict[str, str], list[str]]:
    """The settings of cluster A with this text among its fields, and the notes about them."""
    file = tmp_path / "mm2.yaml"
    file.write_text(V1.replace("        alias: A\n", "        alias: A\n" + textwrap.indent(text, " " * 8)))
    document = read_all([file])
    given = {at.name: entry.reveal() for at, entry in document.entries.items() if at.owner == "A"}
    del given["bootstrap.servers"]
    return given, [note.text for note in document.notes if "is taken to be" not in note.text]


def test_tls_and_passwords_become_settings_with_references_to_secrets(tmp_path: Path) -> None:
    given, notes = secure(tmp_path, SECURE)
    assert given == {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "${env:A_CA}",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="mirror" password="${env:A_PASSWORD}";',
    }
    assert notes == [
        "spec.mirrors[0].source.tls.trustedCertificates: the content of a secret is not in this file: set "
        "HELIOGRAPH_SECRETS_DIR to the directory where secrets are mounted, or the environment variable A_CA, "
        "or write 'ssl.truststore.certificates' under config, for example as "
        "${file:/path/to/file.properties:key}",
        "spec.mirrors[0].source.authentication.passwordSecret: the content of a secret is not in this file: set "
        "HELIOGRAPH_SECRETS_DIR to the directory where secrets are mounted, or the environment variable A_PASSWORD, "
        "or write 'sasl.jaas.config' under config, for example as "
        "${file:/path/to/file.properties:key}",
    ]


def test_a_setting_under_config_wins_over_a_secret(tmp_path: Path) -> None:
    own = "config:\n  sasl.jaas.config: ${file:/secrets:a}\n  ssl.truststore.certificates: ${file:/secrets:ca}\n"
    given, notes = secure(tmp_path, SECURE + own)
    assert (given["sasl.jaas.config"], notes) == ("${file:/secrets:a}", [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tls: {}\n", {"security.protocol": "SSL"}),
        (
            "tls: {}\nauthentication: {type: tls, certificateAndKey: {secretName: s, certificate: c, key: k}}\n",
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": "${env:A_CERTIFICATE}",
                "ssl.keystore.key": "${env:A_KEY}",
            },
        ),
        (
            "authentication: {type: custom, sasl: true, config: {sasl.mechanism: AWS_MSK_IAM}}\n",
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM"},
        ),
        (
            "authentication: {type: oauth, clientId: me, tokenEndpointUri: 'https://x/y', clientSecret: {key: k}}\n",
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                'oauth.token.endpoint.uri="https://x/y" oauth.client.id="me" '
                'oauth.client.secret="${env:A_CLIENT_SECRET}";',
            },
        ),
    ],
)
def test_every_kind_of_authentication_has_its_settings(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert secure(tmp_path, text)[0] == expected


MOUNTED = """\
tls:
  trustedCertificates:
    - {secretName: a-ca, certificate: ca.crt}
    - {secretName: others, pattern: "*.crt"}
"""


def mounted(folder: Path, **files: str) -> None:
    for name, text in files.items():
        file = folder.joinpath(*name.replace("_", "-").split("/"))
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def test_secrets_are_read_from_where_they_are_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIOGRAPH_SECRETS_DIR", str(tmp_path))
    mounted(
        tmp_path, **{"a-ca/ca.crt": "ONE\n", "others/b.crt": "THREE\n", "others/a.crt": "TWO\n", "others/x.key": "NO"}
    )
    mounted(tmp_path, **{"a-user/password": "hush", "a-user/user.crt": "CHAIN", "a-user/user.key": "KEY"})
    secret = "passwordSecret: {secretName: a-user, password: password}"
    scram = f"authentication: {{type: scram-sha-512, username: me, {secret}}}\n"
    given, notes = secure(tmp_path, MOUNTED + scram)
    assert notes == []
    assert given["ssl.truststore.certificates"] == "${strimzisecrets:a-ca:ca.crt}\n${strimzisecrets:others:*.crt}"
    (flow,) = load(tmp_path / "mm2.yaml").flows
    sasl = Sasl("SCRAM-SHA-512", PasswordLogin("me", Secret("hush")))
    assert flow.source.security == Security(Tls(TrustStore("PEM", certificates=Secret("ONE\nTWO\nTHREE"))), sasl)
    tls = "authentication: {type: tls, certificateAndKey: {secretName: a-user, certificate: user.crt, key: user.key}}\n"
    secure(tmp_path, "tls: {}\n" + tls)
    key = KeyStore("PEM", key=Secret("KEY"), certificate_chain=Secret("CHAIN"))
    assert load(tmp_path / "mm2.yaml").flows[0].source.security == Security(Tls(key=key))


def test_tokens_are_fetched_as_the_resource_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIOGRAPH_SECRETS_DIR", str(tmp_path))
    mounted(tmp_path, **{"client/secret": "hush"})
    secure(
        tmp_path,
        "tls: {}\nauthentication:\n  type: oauth\n  clientId: me\n  tokenEndpointUri: https://sso/token\n"
        "  clientSecret: {secretName: client, key: secret}\n  scope: s\n  audience: a\n  readTimeoutSeconds: 30\n"
        "  disableTlsHostnameVerification: true\n  saslExtensions: {tenant: t}\n"
        "  tlsTrustedCertificates: [{secretName: sso, certificate: ca.crt}]\n",
    )
    sasl = load(tmp_path / "mm2.yaml").flows[0].source.security.sasl
    tls = Tls(TrustStore("PEM", f"{tmp_path}/sso/ca.crt"), verify_host=False)
    assert sasl == Sasl(
        "OAUTHBEARER",
        OAuthLogin(
            "https://sso/token",
            "me",
            Secret("hush"),
            "s",
            "a",
            tls=tls,
            extensions=(("tenant", "t"),),
            read_timeout=30.0,
        ),
    )


def test_an_unknown_authentication_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"authentication\.type: 'magic' is not one of tls, plain"):
        secure(tmp_path, "authentication: {type: magic}\n")


def test_patterns_are_for_the_connectors_that_read_them(tmp_path: Path) -> None:
    deployment = read(tmp_path, V1 + "      topicsPattern: a\n      groupsPattern: b\n")
    assert patterns(deployment.flows[0].topics).include == ("a",)
    assert [note.text for note in deployment.notes] == [
        "spec.mirrors[0].groupsPattern has no effect: only a MirrorCheckpointConnector reads it"
    ]


def test_all_errors_of_a_resource_are_reported_at_once(tmp_path: Path) -> None:
    bad = "{state: off, config: {topics: [a], groups: [b]}}"
    text = V1.replace("sourceConnector: {}", f"sourceConnector: {bad}\n      checkpointConnector: {{pause: maybe}}")
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text + "    - source: {}\n")
    assert [text.rpartition("/")[2] for text in raised.value.errors] == [
        "mm2.yaml:13: spec.mirrors[0].sourceConnector.config.topics: a setting is a text, not a list or an object",
        "mm2.yaml:13: spec.mirrors[0].sourceConnector.config.groups: a setting is a text, not a list or an object",
        "mm2.yaml:14: spec.mirrors[0].checkpointConnector.pause: 'maybe' is neither true nor false",
        "mm2.yaml:15: no spec.mirrors[1].source.alias",
    ]
