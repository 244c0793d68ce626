"""A secret is shown nowhere, from the moment its file is read, until it is asked for."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.config import ConfigError
from heliograph.config.declare import catalogue
from heliograph.config.declare.secrets import is_reference, is_secret, shown
from heliograph.config.declare.setting import Setting
from heliograph.config.read.mm2_file import from_properties
from heliograph.config.read.properties import parse
from heliograph.config.read.tree import json_tree, yaml_trees
from heliograph.config.resolve import posted
from heliograph.config.resolve.deployment import assemble
from heliograph.config.resolve.posted import connector
from heliograph.config.show.convert import FORMATS, convert
from heliograph.config.show.outline import outline
from heliograph.config.show.projection import connectors
from heliograph.model.secret import HIDDEN, Secret

from .files import FILE, MINIMAL

# Long enough not to be part of a message by chance.
TEXTS = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), min_size=8, max_size=20).map("zq{}qz".format)
PREFIXES = st.sampled_from(["", "A.", "A->B.", "A.consumer.", "A->B.source.cluster.", "A->B.target.admin."])
NAMES = st.sampled_from(
    [
        *(setting.name for setting in catalogue.settings() if setting.kind.label == "secret"),
        *("my.api.key", "some.Password", "transforms.x.access-key", "config.providers.vault.param.token", "authToken"),
    ]
)


@dataclass
class Holder:
    name: str
    secret: Secret


@settings(deadline=None)
@given(TEXTS, st.sampled_from(["", ">30", "<12", "^20"]))
def test_no_way_of_formatting_shows_it(text: str, form: str) -> None:
    secret = Secret(text)
    holder = Holder("x", secret)
    for formatted in (
        repr(secret),
        str(secret),
        format(secret, form),
        f"{secret!r:{form}} {secret!s} {secret}",
        "%s %r" % (secret, secret),  # noqa: UP031
        "{} {!r}".format(secret, secret),  # noqa: UP032
        repr(holder),
        repr([secret]),
        repr({"a": secret}),
        str(asdict(holder)),
        repr(copy.deepcopy(secret)),
    ):
        assert text not in formatted
        assert HIDDEN in formatted
    assert secret.reveal() == text


@settings(deadline=None)
@given(TEXTS)
def test_json_refuses_it_without_showing_it(text: str) -> None:
    with pytest.raises(TypeError) as raised:
        json.dumps({"password": Secret(text)})
    assert text not in str(raised.value)


@settings(deadline=None)
@given(TEXTS)
def test_a_traceback_does_not_show_it(text: str) -> None:
    def fail(secret: Secret) -> None:
        held = Holder("x", secret)
        raise ValueError(f"cannot use {secret} of {held}")

    secret = Secret(text)
    try:
        fail(secret)
    except ValueError as error:
        # This test's own frame has the text; those that only have the secret must not.
        inner = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
        shown = "".join(traceback.TracebackException.from_exception(inner, capture_locals=True).format())
    assert "secret = [hidden]" in shown
    assert text not in shown


@settings(deadline=None)
@given(TEXTS)
def test_the_traceback_of_an_error_in_a_file_does_not_show_it(text: str) -> None:
    read = from_properties(FILE, parse(f"{MINIMAL}heliograph.notify.webhook = {text}\n".encode(), FILE))
    try:
        assemble(read)
    except ConfigError as error:
        # Without this test's own frame, which has the text.
        inner = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
        lines = "".join(traceback.TracebackException.from_exception(inner, capture_locals=True).format())
    assert "settings = " in lines
    assert text not in lines


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_it_compares_and_pickles_by_its_text(text: str, other: str) -> None:
    assert (Secret(text) == Secret(other)) is (text == other)
    assert Secret(text) != text
    assert pickle.loads(pickle.dumps(Secret(text))) == Secret(text)
    assert len({Secret(text), Secret(text)}) == 1


@settings(deadline=None)
@given(PREFIXES, NAMES, TEXTS)
def test_no_form_of_a_properties_file_shows_it(prefix: str, name: str, text: str) -> None:
    data = f"{MINIMAL}{prefix}{name} = {text}\n".encode()
    entries = parse(data, FILE)
    read = from_properties(FILE, entries)
    assert any(entry.reveal() == text for entry in entries)
    assert text not in repr(entries)
    assert text not in repr(read)
    if name != "heliograph.notify.webhook":
        assert text not in repr(assemble(read))


SECURED = """\
security.protocol = SASL_SSL
sasl.mechanism = {mechanism}
ssl.truststore.password = {text}
ssl.keystore.location = /k
ssl.keystore.password = {text}
ssl.key.password = {text}
sasl.oauthbearer.token.endpoint.url = https://login/token
"""
LOGINS = {
    "PLAIN": 'x.PlainLoginModule required username="me" password="{}";',
    "OAUTHBEARER": 'x.OAuthBearerLoginModule required clientId="me" clientSecret="{}";',
    "SCRAM-SHA-512": 'x.ScramLoginModule required username="me" password="{}" tokenauth="true";',
    "GSSAPI": 'x.Krb5LoginModule required password="{}";',
    "AWS_MSK_IAM": 'x.IAMLoginModule required awsProfileName="a" other="{}";',
}


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(sorted(LOGINS)), TEXTS)
def test_no_form_of_a_secured_deployment_shows_it(mechanism: str, text: str) -> None:
    login = f"sasl.jaas.config = {LOGINS[mechanism].format(text)}\n"
    data = (MINIMAL + SECURED.format(mechanism=mechanism, text=text) + login).encode()
    read = from_properties(FILE, parse(data, FILE))
    deployment = assemble(read)
    forms = [repr(read), repr(deployment), json.dumps(outline(read, deployment))]
    forms += [convert(read, deployment, form).text for form in FORMATS]
    forms += [repr(connector.config) for connector in connectors(read, deployment.all_flows)]
    forms += [json.dumps(posted.shown(connector.whole_config())) for connector in connectors(read, deployment.flows)]
    for form in forms:
        assert text not in form


# With a quote or an end missing, any part of a login may be a piece of a password.
DAMAGES = (
    lambda login: login.replace(";", ""),
    lambda login: login.replace('"', "", 1),
    lambda login: login.replace('="', "=", 1).replace('"', " x", 1),
    lambda login: login.replace(" required", ""),
    lambda login: login.partition('"')[2],
    lambda login: login.replace("LoginModule", "Other"),
    lambda login: login * 2,
    lambda login: login.replace("=", " "),
)


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(sorted(LOGINS)), st.sampled_from(DAMAGES), TEXTS)
def test_no_error_about_a_damaged_login_shows_it(mechanism: str, damage: Callable[[str], str], text: str) -> None:
    login = damage(LOGINS[mechanism].format(f"{text} {text}"))
    data = f"{MINIMAL}security.protocol = SASL_SSL\nsasl.mechanism = {mechanism}\nsasl.jaas.config = {login}\n"
    read = from_properties(FILE, parse(data.encode(), FILE))
    try:
        assert text not in repr(assemble(read))
    except ConfigError as error:
        inner = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
        lines = "".join(traceback.TracebackException.from_exception(inner, capture_locals=True).format())
        assert text not in lines + "".join(map(str, error.warnings))  # noqa: PT017


@settings(deadline=None)
@given(NAMES, TEXTS)
def test_no_form_of_json_yaml_or_a_posted_connector_shows_it(name: str, text: str) -> None:
    config = {"connector.class": "MirrorSource", "source.cluster.alias": "A", f"source.cluster.{name}": text}
    written = json.dumps({"name": "x", "config": config})
    posted = connector("x", config)
    assert posted.given[f"source.cluster.{name}"].reveal() == text
    for form in (json_tree(written, "f"), yaml_trees(written, "f"), posted):
        assert text not in repr(form)
        assert HIDDEN in repr(form)


@pytest.mark.parametrize(
    "setting", list(catalogue.settings()), ids=lambda setting: f"{setting.name}, {setting.where.label}"
)
def test_the_words_find_exactly_those_that_are_declared_secret(setting: Setting[object]) -> None:
    for location in (*setting.where.read, *setting.where.also):
        key = location.key(setting.name)
        assert is_secret(key) is (setting.kind.label == "secret"), key


def test_a_cluster_may_be_named_like_a_secret() -> None:
    text = MINIMAL.replace("A", "private").replace("B", "tokens")
    read = from_properties(FILE, parse(text.encode(), FILE))
    assert assemble(read).clusters["private"].bootstrap_servers == (("a", 9092),)
    assert HIDDEN not in repr(read)


def test_the_class_of_a_provider_is_not_a_secret() -> None:
    assert shown("config.providers.secrets.class", "x") == "x"
    assert shown("config.providers.secrets.param.token", "x") == HIDDEN


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("${env:X}", True),
        (" ${file:/a:b}${env:Y} ", True),
        ("", True),
        ("hush", False),
        ("hush${env:X}", False),
        ('M required username="me" password="${env:X}";', True),
        ("M required username=me password='${env:X}';", True),
        ('M required username="${env:X}" password="hush";', False),
        ('M required username="${env:X}" password=hush;', False),
        ('M required username="me" password="hush ${env:X}";', False),
        ("abc=def${env:X}", False),
        ('org.Plain required username="a" user_bob="hunter2" password="${env:P}";', False),
    ],
)
def test_a_reference_may_be_shown_and_a_literal_may_not(text: str, reference: bool) -> None:
    assert is_reference(Secret(text)) is reference
