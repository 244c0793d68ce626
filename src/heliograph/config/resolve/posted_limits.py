"""What a posted config may not contain unless the deployment allows it: whoever can post a connector should not be able
to run code here or to read files of this machine."""

import re
from collections.abc import Collection, Mapping

from heliograph.config.declare.kinds import split_list
from heliograph.config.declare.plugins import is_built_in
from heliograph.config.declare.secrets import REFERENCE
from heliograph.config.declare.supported import (
    CONFIG_PROVIDERS,
    FILTER_CLASSES,
    REPLICATION_POLICY_CLASS,
    REST_ALLOW,
    SECRETS_DIR,
)
from heliograph.config.read.providers import references
from heliograph.model.rest_settings import CLASSES, FILES, PROVIDERS

_CLASS_SETTINGS = tuple(setting.name for setting in (REPLICATION_POLICY_CLASS, *FILTER_CLASSES))
# Files whose content a client sends: as a token, or signed by a key that is not the caller's. Stores of TLS are not
# among them: as with Connect, a connector may name them.
_FILE_SETTINGS = re.compile(r"(^|\.)sasl\.oauthbearer\.assertion\.(.*\.)?file$")
_FILE_OPTION = re.compile(r"\b[\w.]*(token|assertion|secret)[\w.]*\.(location|file)\s*=", re.IGNORECASE)
_FILE_URL = re.compile(r"\s*file:", re.IGNORECASE)


def refusals(
    config: Mapping[str, str], before: Mapping[str, str], allowed: Collection[str], worker: Mapping[str, str]
) -> dict[str, str]:
    """Setting to reason. `before` is the connector's config until now: what it contains may stay. `worker` are the
    settings of the worker: references to the providers that either of them declares are allowed."""
    declared = {name for known in (before, worker) for name in split_list(known.get(CONFIG_PROVIDERS.name, ""))}
    reasons = {}
    for name, value in config.items():
        if before.get(name) == value:
            continue
        kind, reason = _kind(name, value, declared)
        if kind and kind not in allowed:
            reasons[name] = f"{reason} unless {REST_ALLOW.name} contains '{kind}'"
    return reasons


def _kind(name: str, value: str, declared: Collection[str]) -> tuple[str, str]:
    """What the setting needs to be allowed, and the beginning of the message; empty for a plain setting."""
    if name.endswith(_CLASS_SETTINGS) and not _is_built_in(value):
        return CLASSES, "a posted config cannot name a class that is not built in"
    if CONFIG_PROVIDERS.name in name or name.endswith(SECRETS_DIR.name):
        return PROVIDERS, "a posted config cannot declare config providers"
    # In a file, a provider with a usual name needs no declaration; here it would read this machine's environment.
    for reference, provider in references(value):
        if provider not in declared:
            return (
                PROVIDERS,
                f"a posted config cannot refer to {reference}: config.providers does not declare {provider},",
            )
    if _FILE_SETTINGS.search(name) or _FILE_URL.match(value) or _names_a_token_file(name, value):
        return FILES, "a posted config cannot name a file whose content is sent"
    return "", ""


def _is_built_in(value: str) -> bool:
    return REFERENCE.search(value) is None and is_built_in(value.strip())


def _names_a_token_file(name: str, value: str) -> bool:
    return name.endswith("sasl.jaas.config") and (
        _FILE_OPTION.search(value) is not None or re.search(r"=\s*[\"']?file:", value) is not None
    )
