"""Which names a list of regular expressions selects, by MirrorMaker 2's rules.

The patterns are Java's, so they are translated to Python's dialect first; what Python cannot express is refused with
the pattern and the reason, never matched differently. Names are those of topics, groups or topic configs.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable


class BadPattern(ValueError):
    """A pattern that Java would refuse as well, or that Python cannot express."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(pattern, reason)
        self.pattern = pattern
        self.reason = reason

    def __str__(self) -> str:
        return f"the pattern '{self.pattern}' cannot be used: {self.reason}"


@runtime_checkable
class Matches(Protocol):
    """A filter of names: a `NameFilter`, or an instance of the user's own class, which must be picklable."""

    def matches(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Included and not excluded; an empty include list selects nothing, an empty exclude list excludes nothing."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        compile_names(self.include)
        compile_names(self.exclude)

    def matches(self, name: str) -> bool:
        included = compile_names(self.include)
        if included is None or included.fullmatch(name) is None:
            return False
        excluded = compile_names(self.exclude)
        return excluded is None or excluded.fullmatch(name) is None


def why_not(names: Matches, name: str, setting: str) -> tuple[str, str]:
    """Why a filter does not match a name, and what would change it. `setting` is the name of the list in a file."""
    if not isinstance(names, NameFilter):
        own = type(names).__name__
        return f"{own} does not pick it", f"let {own} pick it"
    excluded = compile_names(names.exclude)
    if excluded is not None and excluded.fullmatch(name):
        pattern = _matching_pattern(names.exclude, name)
        return f"excluded by {setting}.exclude, pattern {pattern}", f"take {pattern} out of {setting}.exclude"
    listed = ", ".join(names.include) or "empty"
    return f"not picked by {setting} ({listed})", f"add it to {setting}"


def _matching_pattern(patterns: tuple[str, ...], name: str) -> str:
    """The pattern that matches; all of them if none is valid on its own."""
    for pattern in patterns:
        with suppress(BadPattern):
            if _compile(pattern).fullmatch(name):
                return pattern
    return ", ".join(patterns)


@dataclass(frozen=True, slots=True)
class AllBut:
    """The names that another filter does not match."""

    but: Matches

    def matches(self, name: str) -> bool:
        return not self.but.matches(name)


@lru_cache(maxsize=512)
def compile_names(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """One expression for the whole list, to be used with `fullmatch`; None for an empty list, which matches nothing.

    The list is joined before it is compiled, as in MM2: `(a` and `b)` are not valid alone, but `(a|b)` is.
    """
    if not patterns:
        return None
    try:
        return _compile("|".join(patterns))
    except BadPattern as joined:
        for pattern in patterns:
            try:
                _compile(pattern)
            except BadPattern as single:
                raise single from None
        raise joined from None


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        # Java's \w, \d, \s and (?i) are ASCII by default.
        return re.compile(_Translation(pattern).python(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        hint = "; write '.*' for any name" if pattern.startswith("*") else ""
        raise BadPattern(pattern, f"{error}{hint}") from None


_Ranges = tuple[tuple[int, int], ...]
_LAST = 0x10FFFF

_POSIX: dict[str, _Ranges] = {
    "Lower": ((0x61, 0x7A),),
    "Upper": ((0x41, 0x5A),),
    "ASCII": ((0x00, 0x7F),),
    "Alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "Digit": ((0x30, 0x39),),
    "Alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "Punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "Graph": ((0x21, 0x7E),),
    "Print": ((0x20, 0x7E),),
    "Blank": ((0x09, 0x09), (0x20, 0x20)),
    "Cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "XDigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "Space": ((0x09, 0x0D), (0x20, 0x20)),
}
_HORIZONTAL: _Ranges = (
    (0x09, 0x09),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x180E, 0x180E),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_VERTICAL: _Ranges = ((0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
_CATEGORY = re.compile(
    r"(?:Is|gc=|general_category=)?(L[ultmoC]?|M[nec]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfson]?)"
)


@lru_cache(maxsize=32)
def _category(name: str) -> _Ranges:
    """The code points of a Unicode general category such as `L` or `Lu` (`LC` is Java's name for Lu, Ll and Lt)."""
    wanted = ("Lu", "Ll", "Lt") if name == "LC" else (name,)
    ranges: list[tuple[int, int]] = []
    for code in range(_LAST + 1):
        if unicodedata.category(chr(code)).startswith(wanted):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    return tuple(ranges)


def _complement(ranges: _Ranges) -> _Ranges:
    gaps: list[tuple[int, int]] = []
    begin = 0
    for low, high in ranges:
        if low > begin:
            gaps.append((begin, low - 1))
        begin = high + 1
    if begin <= _LAST:
        gaps.append((begin, _LAST))
    return tuple(gaps)


def _members(ranges: _Ranges) -> str:
    """The ranges as members of a Python character class."""
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


class _Translation:
    """One pass over a Java pattern. `groups` holds, for each open group, the flag wrappers opened in it so far:
    Java's `(?i)` lasts to the end of its group and over every later `|` in it, Python only has the scoped
    `(?i:...)`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups: list[list[str]] = [[]]

    def python(self) -> str:
        out: list[str] = []
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "\\":
                out.append(self._escape(in_class=False))
            elif char == "[":
                out.append(self._class())
            elif char == "(":
                out.append(self._open())
            elif char == ")":
                self.at += 1
                if len(self.groups) == 1:
                    raise self._refuse("a ')' has no '('")
                out.append(")" * (len(self.groups.pop()) + 1))
            elif char == "|":
                self.at += 1
                wrappers = self.groups[-1]
                out.append(")" * len(wrappers) + "|" + "".join(wrappers))
            elif char == "{":
                counted = self._take(r"\{\d+(?:,\d*)?\}")
                if counted is None:
                    raise self._refuse(
                        "a '{' starts no count such as {3} (lists are split at commas, so {1,3} cannot be written)"
                    )
                out.append(counted.group())
            else:
                self.at += 1
                out.append(char)
        if len(self.groups) > 1:
            raise self._refuse("a '(' has no ')'")
        out.append(")" * len(self.groups[0]))
        return "".join(out)

    def _refuse(self, reason: str) -> BadPattern:
        return BadPattern(self.pattern, reason)

    def _take(self, python_pattern: str) -> re.Match[str] | None:
        match = re.compile(python_pattern).match(self.pattern, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _open(self) -> str:
        if named := self._take(r"\(\?<([A-Za-z][A-Za-z0-9]*)>"):
            self.groups.append([])
            return f"(?P<{named[1]}>"
        if flags := self._take(r"\(\?([A-Za-z]*)(?:-([A-Za-z]*))?([:)])"):
            scoped = f"(?{self._flags(flags[1], flags[2] or '')}:"
            if flags[3] == ":":
                self.groups.append([])
            else:
                self.groups[-1].append(scoped)
            return scoped
        if plain := self._take(r"\((?:\?(?:=|!|>|<=|<!))?(?!\?)"):
            self.groups.append([])
            return plain.group()
        raise self._refuse(f"'{self.pattern[self.at : self.at + 3]}' opens no kind of group that Java has")

    def _flags(self, on: str, off: str) -> str:
        for flag in on + off:
            if flag not in "ismduU":
                raise self._refuse(f"the flag '{flag}' is not supported")
        # Names hold no line ends (d), and case beyond ASCII (u) only matters together with U, which Python calls u.
        switched_on = "".join(flag for flag in on if flag in "ism") + ("u" if "U" in on else "")
        switched_off = "".join(flag for flag in off if flag in "ism")
        return switched_on + (f"-{switched_off}" if switched_off else "")

    def _class(self) -> str:
        opening = self._take(r"\[\^?")
        assert opening is not None
        out = [opening.group()]
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "]" and len(out) > 1:
                self.at += 1
                return "".join(out) + "]"
            if char == "[" or self.pattern.startswith("&&", self.at):
                raise self._refuse("a class or '&&' inside a class is Java's alone: list the characters instead")
            if char == "\\":
                out.append(self._escape(in_class=True))
            else:
                self.at += 1
                ranges = char == "-" and len(out) > 1 and not self.pattern.startswith("]", self.at)
                out.append("-" if ranges else re.escape(char))
        raise self._refuse("a '[' has no ']'")

    def _escape(self, in_class: bool) -> str:
        if quoted := self._take(r"\\Q((?s:.*?))(?:\\E|\Z)"):
            return re.escape(quoted[1])
        if self._take(r"\\[pP]") is not None:
            negated = self.pattern[self.at - 1] == "P"
            return self._set(self._property(), negated, in_class)
        if blank := self._take(r"\\([hHvV])"):
            return self._set(_HORIZONTAL if blank[1] in "hH" else _VERTICAL, blank[1].isupper(), in_class)
        if code := self._take(r"\\(?:x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))"):
            return self._character(int(code[1] or code[2] or code[3], 16))
        if octal := self._take(r"\\0([0-3][0-7]{2}|[0-7]{1,2})"):
            return self._character(int(octal[1], 8))
        if control := self._take(r"\\c([@-_])"):
            return self._character(ord(control[1]) ^ 64)
        if not in_class:
            if reference := self._take(r"\\k<([A-Za-z][A-Za-z0-9]*)>"):
                return f"(?P={reference[1]})"
            if self._take(r"\\z") is not None:
                return r"\Z"
            if self._take(r"\\Z") is not None:
                return r"(?=\n?\Z)"
            if same := self._take(r"\\(?:[1-9]|[bBA](?!\{))"):
                return same.group()
        if self._take(r"\\e") is not None:
            return r"\x1b"
        if same := self._take(r"\\[dDsSwWntrfa]"):
            return same.group()
        if literal := self._take(r"\\([^A-Za-z0-9])"):
            return re.escape(literal[1])
        raise self._refuse(f"'{self.pattern[self.at : self.at + 2]}' is not supported")

    def _character(self, code: int) -> str:
        if code > _LAST:
            raise self._refuse(f"there is no character {code:x}")
        return re.escape(chr(code))

    def _set(self, ranges: _Ranges, negated: bool, in_class: bool) -> str:
        members = _members(_complement(ranges) if negated else ranges)
        return members if in_class else f"[{members}]"

    def _property(self) -> _Ranges:
        name = self._take(r"\{([^}]*)\}|([A-Z])")
        if name is None:
            raise self._refuse("a '\\p' has no name after it, such as \\p{Alpha}")
        text = name[1] if name[1] is not None else name[2]
        if text in _POSIX:
            return _POSIX[text]
        category = _CATEGORY.fullmatch(text)
        if category is None:
            raise self._refuse(f"'\\p{{{text}}}' is not supported")
        return _category(category[1])
