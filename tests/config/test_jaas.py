"""`sasl.jaas.config` is split as Kafka's clients split it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.config.read.jaas import parse


def options(text: str) -> dict[str, str]:
    (module,) = parse(text)
    return {name: value.reveal() for name, value in module.options.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('M required username="me" password="a b";', {"username": "me", "password": "a b"}),
        ("M required username='me' password=plain;", {"username": "me", "password": "plain"}),
        (' M REQUIRED\n  a = "1"\n\tb="2" ; ', {"a": "1", "b": "2"}),
        ('M required a="x;y=z/w";', {"a": "x;y=z/w"}),
        (r'M required a="quote \" backslash \\ tab \t";', {"a": 'quote " backslash \\ tab \t'}),
        (r'M required a="\101\0601";', {"a": "A01"}),
        ("M required a=\"it's\" b='\"';", {"a": "it's", "b": '"'}),
        ('M required /* left out */ a="1"; // and this', {"a": "1"}),
        ('M required a="1" a="2";', {"a": "2"}),
        ('M required username="$ConnectionString" password="Endpoint=sb://x/;SharedAccessKey=k=";',
         {"username": "$ConnectionString", "password": "Endpoint=sb://x/;SharedAccessKey=k="}),
        ("M required useKeyTab=true principal=me@EXAMPLE.COM a=${env:X};",
         {"useKeyTab": "true", "principal": "me@EXAMPLE.COM", "a": "${env:X}"}),
        ("M required;", {}),
        ('M required a="päss€";', {"a": "päss€"}),
    ],
)  # fmt: skip
def test_options_are_read(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


def test_a_login_module_has_the_name_of_its_class() -> None:
    first, second = parse('org.apache.X required a="1"; "quoted.Y" optional;')
    assert (first.name, second.name, first.text("a"), first.text("b", "none")) == ("X", "Y", "1", "none")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("  // only a comment", "is empty"),
        ('M required a="1"', "does not end with ';'"),
        ("M required keyTab=/etc/me.keytab;", "a '/' begins a comment"),
        ("hush;", "does not begin with a login module and 'required'"),
        ("M username=hush;", "does not begin with a login module and 'required'"),
        ("M required password=hush hush;", "has no value for option number 2"),
        ("M required password=;", "has no value for option number 1"),
        ('M required "hush";', "has no value for option number 1"),
    ],
)
def test_what_kafka_refuses_is_refused_without_showing_it(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"^(is empty|does not|has no value)") as raised:
        parse(text)
    assert says in str(raised.value)
    assert "hush" not in str(raised.value)


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")))
def test_any_value_in_quotes_is_read_as_it_was(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    assert options(f'M required password="{escaped}" other=x;') == {"password": value, "other": "x"}


@settings(deadline=None)
@given(st.text(st.sampled_from("aM =;\"'/*\\\n\t7x")))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert parse(f"M required {text}")
