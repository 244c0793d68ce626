"""The kinds of values a setting may have: how the text of a file becomes a value, and what to say if it does not.

A kind refuses a text with a `ValueError` whose words go on where "'text' ..." begins; it knows neither file nor key.
The rules are those of Kafka's `ConfigDef`, see `docs/configuration.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol, TypeVar

from heliograph.model.names import compile_names

T_co = TypeVar("T_co", covariant=True)

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Kind(Protocol[T_co]):
    @property
    def label(self) -> str: ...

    def parse(self, text: str) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Text:
    label: str = "text"

    def parse(self, text: str) -> str:
        return text.strip()


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address to post to; it may hold a secret. Empty for none."""

    label: str = "secret"

    def parse(self, text: str) -> str:
        address = text.strip()
        if address and not re.fullmatch(r"https?://[^/\s]+\S*", address):
            raise ValueError("is no address such as https://hooks.example.com/services/...")
        return address


@dataclass(frozen=True, slots=True)
class Bool:
    label: str = "true or false"

    def parse(self, text: str) -> bool:
        lowered = text.strip().lower()
        if lowered not in ("true", "false"):
            raise ValueError("is neither true nor false")
        return lowered == "true"


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds, both included."""

    low: int = -LONG_MAX - 1
    high: int = LONG_MAX
    but_not: int | None = None

    @property
    def label(self) -> str:
        if self.low < -LONG_MAX:
            return "whole number"
        upper = f" to {self.high}" if self.high < INT_MAX else " or more"
        return f"whole number, {self.low}{upper}" + ("" if self.but_not is None else f", not {self.but_not}")

    def parse(self, text: str) -> int:
        digits = text.strip()
        # int() alone would also take 1_000 and digits of other scripts, which Java refuses.
        if re.fullmatch(r"[+-]?[0-9]+", digits) is None:
            raise ValueError("is not a whole number")
        number = int(digits)
        if number < self.low or number == self.but_not:
            raise ValueError(f"is too small: it must be {self.low} or more" + self._exception())
        if number > self.high:
            raise ValueError(f"is too large: it must be {self.high} or less")
        return number

    def _exception(self) -> str:
        return "" if self.but_not is None else f" and not {self.but_not}"


@dataclass(frozen=True, slots=True)
class Partitions:
    """`source`, or a number of partitions; `source` is 0."""

    label: str = "`source` or whole number, 1 or more"

    def parse(self, text: str) -> int:
        return 0 if text.strip() == "source" else Whole(1, INT_MAX).parse(text)


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number that may have a fraction, within bounds, both included."""

    low: float
    high: float

    @property
    def label(self) -> str:
        return f"number, {self.low:g} to {self.high:g}"

    def parse(self, text: str) -> float:
        if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text.strip()) is None:
            raise ValueError("is not a number")
        number = float(text)
        if not self.low <= number <= self.high:
            raise ValueError(f"is out of range: it must be from {self.low:g} to {self.high:g}")
        return number


def split_list(text: str) -> tuple[str, ...]:
    """Kafka's LIST: cut at commas, blanks around the pieces dropped, no way to escape a comma."""
    stripped = text.strip()
    return tuple(piece.strip() for piece in stripped.split(",")) if stripped else ()


@dataclass(frozen=True, slots=True)
class Names:
    label: str = "list"

    def parse(self, text: str) -> tuple[str, ...]:
        return split_list(text)


@dataclass(frozen=True, slots=True)
class Patterns:
    label: str = "list of regular expressions"

    def parse(self, text: str) -> tuple[str, ...]:
        patterns = split_list(text)
        try:
            compile_names(patterns)
        except ValueError as bad:
            raise ValueError(f"is no list of regular expressions: {bad}") from None
        return patterns


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words, in any case of letters. `otherwise` says what to do if it is none of them."""

    options: tuple[str, ...]
    otherwise: str = ""

    @property
    def label(self) -> str:
        return " or ".join(f"`{option}`" for option in self.options)

    def parse(self, text: str) -> str:
        for option in self.options:
            if text.strip().lower() == option.lower():
                return option
        raise ValueError(self.otherwise or f"is not one of {', '.join(self.options)}")


@dataclass(frozen=True, slots=True)
class Subset:
    """Some of a few words, commas between."""

    options: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"list of {', '.join(f'`{option}`' for option in self.options)}"

    def parse(self, text: str) -> frozenset[str]:
        words = split_list(text.lower())
        for word in words:
            if word not in self.options:
                raise ValueError(f"has '{word}', which is not one of {', '.join(self.options)}")
        if not words:
            raise ValueError(f"is empty: some of {', '.join(self.options)} are needed")
        return frozenset(words)


@dataclass(frozen=True, slots=True)
class Separator:
    """Taken as it stands, blanks included, as MM2 does; refused if no topic could have it in its name."""

    label: str = "text"

    def parse(self, text: str) -> str:
        if re.fullmatch(r"[A-Za-z0-9._-]*", text) is None:
            raise ValueError("cannot be part of a topic name (allowed are letters, digits, '.', '_' and '-')")
        return text


@dataclass(frozen=True, slots=True)
class Aliases:
    label: str = "list"

    def parse(self, text: str) -> tuple[str, ...]:
        aliases = split_list(text)
        if not aliases:
            raise ValueError("lists no cluster: write for example 'clusters = A, B'")
        for alias in aliases:
            if not alias:
                raise ValueError("has an empty place between or after its commas")
            if re.fullmatch(r"[A-Za-z0-9._-]+", alias) is None:
                raise ValueError(
                    f"has the alias '{alias}', which cannot be part of topic names: use letters, digits, '.', '_', '-' "
                    "and put commas between aliases"
                )
        doubled = next((alias for at, alias in enumerate(aliases) if alias in aliases[:at]), None)
        if doubled is not None:
            raise ValueError(f"lists the cluster {doubled} twice")
        return aliases


@dataclass(frozen=True, slots=True)
class Addresses:
    """`host:port`, several with commas between; an IPv6 address in brackets. Kafka also takes, and drops, a
    `scheme://`."""

    label: str = "list of host:port"

    def parse(self, text: str) -> tuple[tuple[str, int], ...]:
        addresses = split_list(text)
        if not addresses:
            raise ValueError("holds no address: write for example 'broker1:9092, broker2:9092'")
        return tuple(_address(address) for address in addresses)


def _address(text: str) -> tuple[str, int]:
    bare = text.rpartition("://")[2]
    parts = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w-]+)\]|([^\[\]:\s]+)):([0-9]+)", bare)
    if parts is None:
        if re.fullmatch(r"\[[^\[\]\s]+\]|[^\[\]:\s]+", bare):
            raise ValueError(f"has an address without a port: write '{bare}:9092' if it is Kafka's usual one")
        if bare.count(":") > 1 and "[" not in bare:
            raise ValueError(f"has an IPv6 address without brackets: write '[{bare}]:9092', with the right port")
        raise ValueError(f"has an address that is no host:port: '{text}'")
    port = int(parts[3])
    if not 1 <= port <= 65535:
        raise ValueError(f"has an address with an impossible port: '{text}'")
    return parts[1] or parts[2], port
