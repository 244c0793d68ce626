"""The kinds of values that a setting may have: how the text of a file becomes a value, and why a text is refused.

A kind refuses a text with a `ValueError` whose message continues "'text' ..."; it knows neither file nor key. The rules
are those of Kafka's `ConfigDef`, see `docs/configuration.md`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from heliograph.model.names import compile_names
from heliograph.model.secret import Secret

T_co = TypeVar("T_co", covariant=True)

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """`label` is what the reference page calls it."""

    label: str
    parse: Callable[[str], T_co]


def _bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return lowered == "true"


def _auto_or_bool(text: str) -> bool | None:
    """None for `auto`."""
    if text.strip().lower() == "auto":
        return None
    try:
        return _bool(text)
    except ValueError:
        raise ValueError("is not one of auto, true, false") from None


def _webhook(text: str) -> str:
    address = text.strip()
    if address and not re.fullmatch(r"https?://[^/\s]+\S*", address):
        raise ValueError("is no address such as https://hooks.example.com/services/...")
    return address


def whole(low: int = -LONG_MAX - 1, high: int = LONG_MAX, but_not: int | None = None) -> Kind[int]:
    """A whole number within bounds, both included."""
    excluded = "" if but_not is None else f"not {but_not}"
    label = "whole number"
    if low >= -LONG_MAX:
        upper = f" to {high}" if high < INT_MAX else " or more"
        label = f"whole number, {low}{upper}" + (f", {excluded}" if excluded else "")

    def parse(text: str) -> int:
        digits = text.strip()
        # int() also accepts 1_000 and digits of other scripts, which Java refuses.
        if re.fullmatch(r"[+-]?[0-9]+", digits) is None:
            raise ValueError("is not a whole number")
        number = int(digits)
        if number < low or number == but_not:
            raise ValueError(f"is too small: it must be {low} or more" + (f" and {excluded}" if excluded else ""))
        if number > high:
            raise ValueError(f"is too large: it must be {high} or less")
        return number

    return Kind(label, parse)


def decimal(low: float, high: float) -> Kind[float]:
    """A number that may have a fraction, within bounds, both included."""

    def parse(text: str) -> float:
        if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text.strip()) is None:
            raise ValueError("is not a number")
        number = float(text)
        if not low <= number <= high:
            raise ValueError(f"is out of range: it must be from {low:g} to {high:g}")
        return number

    return Kind(f"number, {low:g} to {high:g}", parse)


def _partitions(text: str) -> int:
    return 0 if text.strip() == "source" else whole(1, INT_MAX).parse(text)


def split_list(text: str) -> tuple[str, ...]:
    """Kafka's LIST: split at commas, spaces around the items dropped, no way to escape a comma."""
    stripped = text.strip()
    return tuple(item.strip() for item in stripped.split(",")) if stripped else ()


def _patterns(text: str) -> tuple[str, ...]:
    patterns = split_list(text)
    try:
        compile_names(patterns)
    except ValueError as error:
        raise ValueError(f"is not a list of regular expressions: {error}") from None
    return patterns


def choice(*options: str, otherwise: str = "") -> Kind[str]:
    """One of some words, upper or lower case. `otherwise` is the message for any other word."""

    def parse(text: str) -> str:
        for option in options:
            if text.strip().lower() == option.lower():
                return option
        raise ValueError(otherwise or f"is not one of {', '.join(options)}")

    return Kind(" or ".join(f"`{option}`" for option in options), parse)


def subset(*options: str, may_be_empty: bool = False) -> Kind[frozenset[str]]:
    """Some of some words, separated by commas."""

    def parse(text: str) -> frozenset[str]:
        words = split_list(text.lower())
        for word in words:
            if word not in options:
                raise ValueError(f"has '{word}', which is not one of {', '.join(options)}")
        if not words and not may_be_empty:
            raise ValueError(f"is empty: write one or more of {', '.join(options)}")
        return frozenset(words)

    return Kind(f"list of {', '.join(f'`{option}`' for option in options)}", parse)


def _separator(text: str) -> str:
    """Taken as it is, spaces included, as MM2 does."""
    if re.fullmatch(r"[A-Za-z0-9._-]*", text) is None:
        raise ValueError("cannot be part of a topic name (allowed are letters, digits, '.', '_' and '-')")
    return text


def _alias(text: str) -> str:
    alias = text.strip()
    if re.fullmatch(r"[A-Za-z0-9._-]*", alias) is None:
        raise ValueError("cannot be part of topic names: use letters, digits, '.', '_', '-', or leave it empty")
    return alias


def _aliases(text: str) -> tuple[str, ...]:
    aliases = split_list(text)
    if not aliases:
        raise ValueError("lists no cluster: write for example 'clusters = A, B'")
    for number, alias in enumerate(aliases):
        if not alias:
            raise ValueError("has an empty item: remove the extra comma")
        if re.search(r"\s", alias):
            better = ", ".join(alias.split())
            raise ValueError(
                f"has the alias '{alias}', which has a space: put commas between aliases, as in '{better}'"
            )
        if re.fullmatch(r"[A-Za-z0-9._-]+", alias) is None:
            raise ValueError(
                f"has the alias '{alias}', which cannot be part of topic names: use letters, digits, '.', '_', '-' "
                "and put commas between aliases"
            )
        if alias in aliases[:number]:
            raise ValueError(f"lists the cluster {alias} twice")
    return aliases


def _addresses(text: str) -> tuple[tuple[str, int], ...]:
    """`host:port`, several separated by commas; an IPv6 address in brackets. Kafka also accepts, and drops, a
    `scheme://`."""
    addresses = split_list(text)
    if not addresses:
        raise ValueError("holds no address: write for example 'broker1:9092, broker2:9092'")
    if re.search(r":[0-9]+(;|\s+[^\s,])", text.strip()):
        raise ValueError("has no comma between addresses: write for example 'broker1:9092, broker2:9092'")
    return tuple(_address(address) for address in addresses)


def _address(text: str) -> tuple[str, int]:
    bare = text.rpartition("://")[2]
    if re.search(r"""[${}<>"']""", bare):
        raise ValueError(f"has an address with characters that no host name has: '{text}'")
    parts = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w-]+)\]|([^\[\]:\s]+)):([0-9]+)", bare)
    if parts is None:
        if re.fullmatch(r"\[[^\[\]\s]+\]|[^\[\]:\s]+", bare):
            raise ValueError(f"has an address without a port: write '{bare}:9092' if it is Kafka's usual one")
        if bare.count(":") > 1 and "[" not in bare:
            raise ValueError(f"has an IPv6 address without brackets: write '[{bare}]:9092', with the right port")
        raise ValueError(f"has an address that is not host:port: '{text}'")
    port = int(parts[3])
    if not 1 <= port <= 65535:
        raise ValueError(f"has an address with an impossible port: '{text}'")
    return parts[1] or parts[2], port


def _listeners(text: str) -> tuple[tuple[str, str, int], ...]:
    """Scheme, host and port of each; the host is empty for all interfaces."""
    listeners = []
    for listener in filter(None, split_list(text)):
        parts = re.fullmatch(r"(?i)(https?)://(?:\[([^\]]*)\]|([^:/\[\]]*)):([0-9]{1,5})/?", listener)
        if parts is None or int(parts[4]) > 65535:
            raise ValueError(
                f"has '{listener}', which is not an address: write http://HOST:PORT or https://HOST:PORT, without HOST "
                "for all interfaces"
            )
        host = parts[2] or parts[3] or ""
        listeners.append((parts[1].lower(), "" if host in ("0.0.0.0", "::") else host, int(parts[4])))
    return tuple(listeners)


def _https(text: str) -> str:
    address = text.strip()
    is_loopback = re.fullmatch(r"http://(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?(/\S*)?", address)
    if address and not is_loopback and not re.fullmatch(r"https://[^/\s]+\S*", address):
        raise ValueError("is no https:// address: whoever can change the answer on its way could sign tokens")
    return address


def _paths(text: str) -> frozenset[str]:
    paths = frozenset(filter(None, split_list(text)))
    for path in paths:
        if not path.startswith("/"):
            raise ValueError(f"has '{path}', which is no path: write for example /health, /metrics")
    return paths


def _secret(text: str) -> Secret:
    return Secret(text.strip())


def _checks_host_name(text: str) -> bool:
    algorithm = text.strip().lower()
    if algorithm not in ("https", ""):
        raise ValueError("is neither https nor empty: leave it empty to accept a certificate of any host")
    return bool(algorithm)


_TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")


def _tls_versions(text: str) -> tuple[str, ...]:
    versions = split_list(text)
    for version in versions:
        if version not in _TLS_VERSIONS:
            raise ValueError(f"has '{version}', which is not one of {', '.join(_TLS_VERSIONS)}")
    return versions


def _highest_tls(text: str) -> tuple[str, ...]:
    """The TLS versions up to this one; all for names that mean no single version."""
    version = text.strip()
    if version in ("TLS", "SSL", "Default"):
        return _TLS_VERSIONS
    if version not in _TLS_VERSIONS:
        raise ValueError(f"is not one of {', '.join(_TLS_VERSIONS)}")
    return _TLS_VERSIONS[: _TLS_VERSIONS.index(version) + 1]


TEXT = Kind("text", str.strip)
SECRET = Kind("secret", _secret)
HOST_NAME_CHECK = Kind("`https` or empty", _checks_host_name)
TLS_VERSIONS = Kind("list of TLS versions", _tls_versions)
HIGHEST_TLS = Kind("TLS version", _highest_tls)
BOOL = Kind("true or false", _bool)
AUTO_OR_BOOL = Kind("`auto`, `true` or `false`", _auto_or_bool)
NAMES = Kind("list", split_list)
PATTERNS = Kind("list of regular expressions", _patterns)
SEPARATOR = Kind("text", _separator)
ALIAS = Kind("text", _alias)
ALIASES = Kind("list", _aliases)
ADDRESSES = Kind("list of host:port", _addresses)
PARTITIONS = Kind("`source` or whole number, 1 or more", _partitions)
REPLICATION_FACTOR = whole(-1, 32767, but_not=0)
WEBHOOK = Kind("secret", _webhook)
LISTENERS = Kind("list of http://HOST:PORT or https://HOST:PORT", _listeners)
HTTPS = Kind("https address", _https)
PATHS = Kind("list of paths", _paths)
