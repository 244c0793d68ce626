"""What a posted connector config may contain: no classes, no providers, no files that are sent, unless allowed."""

import sys
from pathlib import Path

import pytest

from heliograph.config.resolve.posted_limits import refusals
from heliograph.model.rest_settings import CLASSES, FILES, PROVIDERS, RestSettings
from rest.served_app import config, serving

WORKER = {"config.providers": "declared"}
STRIMZI_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("replication.policy.class", "os.path.Policy", CLASSES),
        ("replication.policy.class", "com.example.Policy", CLASSES),
        ("topic.filter.class", "${declared:CLASS}", CLASSES),
        ("group.filter.class", "a.B", CLASSES),
        ("config.property.filter.class", "a.B", CLASSES),
        ("config.providers", "file", PROVIDERS),
        ("topics", "${env:AWS_SECRET_ACCESS_KEY}", PROVIDERS),
        ("sasl.jaas.config", 'x required password="${file:/etc/secrets:password}";', PROVIDERS),
        ("config.providers.file.class", "org.apache.kafka.common.config.provider.FileConfigProvider", PROVIDERS),
        ("source.cluster.config.providers.file.param.allowed.paths", "/", PROVIDERS),
        ("sasl.oauthbearer.token.endpoint.url", "file:///etc/passwd", FILES),
        ("source.cluster.sasl.oauthbearer.jwks.endpoint.url", " FILE:/etc/passwd", FILES),
        ("producer.override.sasl.oauthbearer.assertion.private.key.file", "/etc/key", FILES),
        ("sasl.oauthbearer.assertion.file", "/etc/passwd", FILES),
        ("sasl.jaas.config", f'{STRIMZI_LOGIN} oauth.access.token.location="/etc/passwd";', FILES),
        ("target.cluster.sasl.jaas.config", f"{STRIMZI_LOGIN} oauth.client.assertion.location=/etc/passwd;", FILES),
    ],
)
def test_what_reaches_into_this_machine_needs_to_be_allowed(name: str, value: str, kind: str) -> None:
    given = {name: value}
    others = {CLASSES, PROVIDERS, FILES} - {kind}
    (reason,) = refusals(given, {}, others, WORKER).values()
    assert reason.endswith(f"unless heliograph.rest.allow contains '{kind}'")
    assert refusals(given, {}, {kind}, WORKER) == {}
    assert refusals(given, given, (), WORKER) == {}, "what the connector already has may stay"
    assert refusals(given, {name: "before"}, (), WORKER) == {name: reason}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connector.class", "org.apache.kafka.connect.mirror.MirrorSourceConnector"),
        ("replication.policy.class", "IdentityReplicationPolicy"),
        ("replication.policy.class", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
        ("topic.filter.class", "org.apache.kafka.connect.mirror.DefaultTopicFilter"),
        ("topics", "${declared:/secrets:topics}"),
        ("ssl.truststore.location", "/etc/stores/truststore.jks"),
        ("ssl.keystore.location", "/etc/stores/keystore.p12"),
        ("sasl.jaas.config", f'{STRIMZI_LOGIN} oauth.client.id="me" oauth.token.endpoint.uri="https://h/token";'),
        ("sasl.jaas.config", 'x.Krb5LoginModule required useKeyTab=true keyTab="/etc/me.keytab";'),
        ("key.converter", "org.apache.kafka.connect.converters.ByteArrayConverter"),
    ],
)
def test_what_connect_users_post_is_accepted(name: str, value: str) -> None:
    assert refusals({name: value}, {}, (), WORKER) == {}


def test_a_class_is_imported_only_if_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "posted_module.py").write_text(
        "class Filter:\n    def matches(self, name: str) -> bool:\n        return True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    posted = config("A", "B", topic_filter_class="posted_module.Filter")
    plugin = "/connector-plugins/MirrorSourceConnector/config/validate"
    with serving(RestSettings()) as client:
        answer = client("PUT", "/connectors/ab/config", posted)
        assert answer.status == 400
        reason = (
            "topic.filter.class: a posted config cannot name a class that is not built in unless "
            "heliograph.rest.allow contains 'classes'"
        )
        assert reason in answer.body["message"]
        assert client("POST", "/connectors", {"name": "new", "config": posted}).status == 400
        assert client("PATCH", "/connectors/ab/config", {"topic.filter.class": "posted_module.Filter"}).status == 400
        validated = client("PUT", plugin, {**posted, "name": "ab"}).body
        errors = [
            row["value"]["errors"] for row in validated["configs"] if row["value"]["name"] == "topic.filter.class"
        ]
        assert (validated["error_count"], errors) == (1, [[reason]])
        assert "posted_module" not in sys.modules
    with serving(RestSettings(allowed=frozenset({CLASSES}))) as client:
        assert client("PUT", "/connectors/ab/config", posted).status == 200
        assert "posted_module" in sys.modules
