"""Which settings hold something that must not be shown: passwords, keys, tokens, logins."""

from __future__ import annotations

import re

from heliograph.config.declare import catalogue
from heliograph.config.declare.setting import Scope

HIDDEN = "[hidden]"

_SECRET_WORDS = re.compile(
    r"password|passwd|passphrase|secret|token(?!\.endpoint)|jaas|credential|private|api\.?key|access\.?key|"
    r"keystore\.key|(^|[._-])key$",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """By its declaration where there is one, whatever stands in front of it, and by its words in any case: a setting
    for a class of a user's own may be called anything."""
    pieces = name.split(".")
    for start in range(len(pieces)):
        rest = ".".join(pieces[start:])
        hits = (catalogue.find(scope, rest) for scope in (Scope.FLOW, Scope.CLUSTER, Scope.TOP))
        if any(hit is not None and hit.setting.kind.label == "secret" for hit in hits):
            return True
    return _SECRET_WORDS.search(name) is not None


def shown(name: str, value: str) -> str:
    return HIDDEN if is_secret(name) else value
