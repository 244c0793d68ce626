"""The security of a single client, from Kafka's settings for one: a mapping, or a properties file."""

import os
from collections.abc import Mapping

from heliograph.config.declare.secrets import hide
from heliograph.config.read import properties
from heliograph.config.read.entry import FileEntry, top_key
from heliograph.config.read.providers import declared_providers
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.security import of_top_level
from heliograph.model.security import Security

_MAPPING = "config"


def client_security(config: Mapping[str, str] | str | os.PathLike[str]) -> Security:
    """References need `config.providers`, as in Kafka. Raises `ConfigError`."""
    if isinstance(config, Mapping):
        file = _MAPPING
        entries = [FileEntry(0, key, hide(key, value)) for key, value in config.items()]
    else:
        file = os.fspath(config)
        entries = list(properties.read(config))
    settings = Settings(file, {top_key(entry.key): entry for entry in entries}, declared_providers(file, entries))
    return of_top_level(settings)[0]
