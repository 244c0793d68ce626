"""Names against lists of regular expressions, with the examples of MM2's rules and the dialect of Java."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.model.names import AllBut, BadPattern, NameFilter, why_not


def matches(name: str, *patterns: str) -> bool:
    return NameFilter(patterns).matches(name)


def test_an_empty_include_list_selects_nothing() -> None:
    assert not NameFilter((), ()).matches("orders")
    assert not NameFilter().matches("")


def test_an_empty_exclude_list_excludes_nothing() -> None:
    assert NameFilter((".*",), ()).matches("orders")


def test_exclude_wins_over_include() -> None:
    names = NameFilter(("orders.*",), (r".*\.internal",))
    assert names.matches("orders.v1")
    assert not names.matches("orders.internal")
    assert not names.matches("customers")


def test_a_pattern_must_match_the_whole_name() -> None:
    assert not matches("orders2", "orders")
    assert not matches("my-orders", "orders")
    assert matches("orders", "orders")


def test_every_pattern_of_the_list_is_an_alternative_of_its_own() -> None:
    assert matches("b", "a", "b")
    assert not matches("ab", "a", "b")


def test_the_list_is_joined_before_it_is_compiled() -> None:
    assert matches("xa", "x(a", "b)")
    assert matches("xb", "x(a", "b)")
    assert not matches("b", "x(a", "b)")


@pytest.mark.parametrize(
    ("topic", "copied"),
    [
        ("orders", True),
        ("a.internal", False),
        ("a-internal", False),
        ("a.replica", False),
        ("__consumer_offsets", False),
    ],
)
def test_mm2s_own_exclude_list_does_what_it_does_there(topic: str, copied: bool) -> None:
    names = NameFilter((".*",), (r".*[\-\.]internal", r".*\.replica", "__.*"))
    assert names.matches(topic) is copied


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"\p{Alpha}+", "abcXYZ", "ab1"),
        (r"\p{Alnum}{3}", "a1B", "a-b"),
        (r"[\p{Lower}_]+", "a_b", "A"),
        (r"\P{Digit}+", "abc", "a1"),
        (r"[^\p{Digit}]+", "abc", "a1"),
        (r"[\P{Digit}]+", "abc", "a1"),
        (r"\p{L}+", "größe", "a1"),
        (r"\pL+", "größe", "a1"),
        (r"\p{IsLu}+", "ÄB", "äb"),
        (r"\p{gc=Nd}+", "12", "a"),
        (r"\p{Punct}", "!", "a"),
        (r"(?<year>\d{4})-\k<year>", "2024-2024", "2024-2025"),
        (r"\Qa.b\E.*", "a.bc", "axb"),
        (r"\Qa.b", "a.b", "axb"),
        (r"[\Q.-\E]", "-", "a"),
        (r"a++b", "aab", "b"),
        (r"a*+b", "aab", "aa"),
        (r"(?>a|ab)c", "ac", "abc"),
        (r"(?!x).*", "y", "x"),
        (r"(?i)ORDERS", "orders", "order"),
        (r"a(?i)b|c", "C", "A"),
        (r"(x(?i)y)z", "xYz", "xYZ"),
        (r"(?i:a)b", "Ab", "aB"),
        (r"(?i)a(?-i)b", "Ab", "AB"),
        (r"\x41\x{42}\u0043\0104", "ABCD", "abcd"),
        (r"a\z", "a", "ab"),
        (r"a\-b\_c", "a-b_c", "a.b.c"),
        (r"[&~|#^]", "&", "a"),
        (r"[]a]", "]", "b"),
        (r"[^]a]", "b", "]"),
        (r"[+--]", ",", "."),
        (r"[-a]", "-", "b"),
        (r"[a-]", "-", "b"),
        (r"[a\-z]", "-", "b"),
        (r"[^\P{Alpha}]", "a", "1"),
        (r"(?U)\w", "ä", "-"),
        (r"\p{LC}", "a", "1"),
        (r"a]}", "a]}", "a"),
        (r"\w+", "abc", "ä"),
        (r"a{2}b{1,}c{0,1}", "aabc", "abc"),
        (r"\h", "\t", "a"),
    ],
)
def test_java_patterns_mean_what_they_mean_in_java(pattern: str, yes: str, no: str) -> None:
    assert matches(yes, pattern)
    assert not matches(no, pattern)


def test_a_flag_in_one_pattern_lasts_into_the_next_as_in_java() -> None:
    assert matches("B", "(?i)a", "b")


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1",
        "a{,3}",
        "[a-z&&[^b]]",
        "[a[b]]",
        r"\p{InGreek}",
        r"\p",
        r"\R",
        r"\X",
        r"[\b]",
        "(?x)a b",
        "(?P<n>a)",
        "(a",
        "a)",
        "[a",
        "[a--]",
        r"\E",
        "*",
        "a**",
        "(?<=a+)b",
        "\\",
    ],
)
def test_an_unsupported_pattern_is_refused_and_quoted(pattern: str) -> None:
    with pytest.raises(BadPattern, match=re.escape(f"'{pattern}'")):
        NameFilter((".*", pattern))


def test_the_error_for_a_lone_star_says_what_to_write() -> None:
    with pytest.raises(BadPattern, match=re.escape("write '.*'")):
        NameFilter(("*",))


def test_a_count_that_the_comma_split_in_two_says_so() -> None:
    with pytest.raises(BadPattern, match="split at commas"):
        NameFilter(("a{1", "3}"))


def test_a_filter_can_be_pickled_and_compared() -> None:
    names = NameFilter(("a.*",), ("ab",))
    again = pickle.loads(pickle.dumps(names))
    assert again == names
    assert again.matches("ac")
    assert not again.matches("ab")


@settings(deadline=None)
@given(st.text(st.characters(codec="ascii", exclude_characters=","), min_size=1))
def test_a_quoted_name_matches_itself(name: str) -> None:
    if "\\E" not in name:
        assert matches(name, f"\\Q{name}\\E")


def test_the_pattern_that_excludes_a_name_is_reported() -> None:
    names = NameFilter(("orders.*", "pay.*"), ("(.*-old", ".*-tmp)", ".*-secret"))
    assert why_not(names, "orders-secret", "topics") == (
        "excluded by topics.exclude, pattern .*-secret",
        "take .*-secret out of topics.exclude",
    )
    assert why_not(names, "clicks", "topics") == ("not picked by topics (orders.*, pay.*)", "add it to topics")
    # Patterns that are one only together.
    assert why_not(names, "orders-old", "topics")[0].endswith("pattern (.*-old, .*-tmp), .*-secret")
    assert why_not(AllBut(names), "orders", "groups")[0] == "AllBut does not pick it"
