"""The value of `sasl.jaas.config`: login modules with their options, split as Kafka's clients split it. Words without
quotes may have more characters than older clients allow.

No message contains a part of the text: with a missing quote, any part of it may be a piece of a password.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from heliograph.model.secret import Secret

_FLAGS = ("required", "requisite", "sufficient", "optional")
_QUOTES = "\"'"
_BREAKS = "\n\r"
# A slash begins a comment anywhere outside of quotes, so no bare word contains one.
_WORD = re.compile(r"[^\x00-\x20;=/\"'\x81-\x9f]+")
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)|/[^\r\n]*", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """`name` is the class without its package."""

    name: str
    options: Mapping[str, Secret]

    def text(self, option: str, default: str = "") -> str:
        """Of an option that is no secret."""
        return self.options[option].reveal() if option in self.options else default


def parse(text: str) -> tuple[LoginModule, ...]:
    """Raises `ValueError`, whose message continues "sasl.jaas.config ..."."""
    modules: list[LoginModule] = []
    tokens = list(_tokens(text))
    while tokens:
        end = next((number for number, (token, is_text) in enumerate(tokens) if token == ";" and not is_text), None)
        if end is None:
            raise ValueError(
                "does not end with ';': write one after the last option (outside of quotes, a '/' begins a comment)"
            )
        modules.append(_module(tokens[:end]))
        tokens = tokens[end + 1 :]
    if not modules:
        raise ValueError("is empty: write a login module, 'required', its options and ';'")
    return tuple(modules)


def _module(tokens: list[tuple[str, bool]]) -> LoginModule:
    texts = [token if is_text else None for token, is_text in tokens]
    if len(texts) < 2 or texts[0] is None or texts[1] is None or texts[1].lower() not in _FLAGS:
        raise ValueError("does not begin with a login module and 'required'")
    options: dict[str, Secret] = {}
    for at in range(2, len(tokens), 3):
        name, equals, value = (tokens[at : at + 3] + [("", False)] * 3)[:3]
        if not name[1] or equals != ("=", False) or not value[1]:
            raise ValueError(
                f'has no value for option number {len(options) + 1}: write name="value", in double quotes if the '
                "value has spaces or one of / ; ="
            )
        options[name[0]] = Secret(value[0])
    return LoginModule(texts[0].rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Each with whether it is a word or quoted, rather than one of the characters between them."""
    at = 0
    while at < len(text):
        if text[at] <= " ":
            at += 1
        elif text[at] in _QUOTES:
            quoted, at = _quoted(text, at)
            yield quoted, True
        elif comment := _COMMENT.match(text, at):
            at = comment.end()
        elif word := _WORD.match(text, at):
            at = word.end()
            yield word[0], True
        else:
            yield text[at], False
            at += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The content of a quoted text, which ends at the line's end at the latest, and where the rest begins."""
    content: list[str] = []
    at = start + 1
    while at < len(text) and text[at] not in _BREAKS:
        if text[at] == text[start]:
            return "".join(content), at + 1
        escape = _ESCAPE.match(text, at)
        content.append(_unescaped(escape[1]) if escape else text[at])
        at = escape.end() if escape else at + 1
    return "".join(content), at


def _unescaped(code: str) -> str:
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)
