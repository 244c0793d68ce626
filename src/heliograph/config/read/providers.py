"""References such as `${env:NAME}` in values, to the providers that the file declares, as in MirrorMaker 2.

A reference to an undeclared provider, or to a key that it does not have, stays as it is. Values are resolved when a
file is read; `service/file_flows` notices when they change.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from heliograph.config.declare.kinds import split_list
from heliograph.config.declare.secrets import REFERENCE
from heliograph.config.declare.supported import CONFIG_PROVIDERS, SECRETS_DIR
from heliograph.config.messages import ConfigError
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.properties import read
from heliograph.config.read.vault import vault_provider
from heliograph.model.names import NameFilter

SECRETS_DIR_VARIABLE = "HELIOGRAPH_SECRETS_DIR"
# The usual names of providers in Connect and Strimzi. A class is needed for other names only.
_KAFKA, _STRIMZI = "org.apache.kafka.common.config.provider", "io.strimzi.kafka"
USUAL_PROVIDERS = {
    **dict.fromkeys(("env", "strimzienv"), f"{_KAFKA}.EnvVarConfigProvider"),
    **dict.fromkeys(("file", "strimzifile"), f"{_KAFKA}.FileConfigProvider"),
    **dict.fromkeys(("directory", "strimzidir"), f"{_KAFKA}.DirectoryConfigProvider"),
    **dict.fromkeys(("secrets", "strimzisecrets"), f"{_STRIMZI}.KubernetesSecretConfigProvider"),
    **dict.fromkeys(("configmaps", "strimziconfigmaps"), f"{_STRIMZI}.KubernetesConfigMapConfigProvider"),
}
# Takes path and key of a reference, returns the value; None leaves the reference as it is.
Provider = Callable[[str, str], str | None]


@dataclass(frozen=True, slots=True)
class _Environment:
    """Environment variables; only those of some names."""

    names: NameFilter

    def __call__(self, _path: str, key: str) -> str | None:
        return os.environ.get(key) if self.names.matches(key) else None

    def why_missing(self, key: str) -> str:
        if not self.names.matches(key):
            return f"allowlist.pattern does not allow the environment variable {key}"
        return f"the environment variable {key} is not set"


def declared_providers(file: str, top: Iterable[FileEntry]) -> dict[str, Provider | None]:
    """The providers of `config.providers`, by name; None for one whose class is not supported. `top` are the settings
    at top level."""
    of_providers = (CONFIG_PROVIDERS.name, SECRETS_DIR.name)
    texts = {entry.key: entry.reveal() for entry in top if entry.key.startswith(of_providers)}
    try:
        return {name: _provider(name, texts) for name in split_list(texts.get(CONFIG_PROVIDERS.name, "")) if name}
    except ValueError as error:
        raise ConfigError(f"{file}: config.providers: {error}") from None


def resolve(text: str, providers: Mapping[str, Provider | None], keep_failing: bool = False) -> str:
    """A reference without a value stays as it is. Raises `ValueError` if a provider fails, unless `keep_failing`."""

    def value(reference: re.Match[str]) -> str:
        provider = providers.get(reference[1])
        try:
            provided = provider(reference[2] or "", reference[3]) if provider else None
        except ValueError:
            if not keep_failing:
                raise
            provided = None
        return reference[0] if provided is None else provided

    return REFERENCE.sub(value, text)


def unresolved(text: str, providers: Mapping[str, Provider | None]) -> Iterator[tuple[str, str]]:
    """The references that stay as they are, each with the reason."""
    for reference in REFERENCE.finditer(text):
        if reference[1] not in providers:
            yield reference[0], f"there is no '{reference[1]}' in config.providers"
        elif (provider := providers[reference[1]]) is None:
            yield reference[0], f"this version does not support the class of '{reference[1]}'"
        else:
            try:
                if provider(reference[2] or "", reference[3]) is None:
                    if isinstance(provider, _Environment):
                        yield reference[0], provider.why_missing(reference[3])
                    else:
                        yield reference[0], f"'{reference[1]}' has no value for it"
            except ValueError as error:
                yield reference[0], str(error)


def references(text: str) -> tuple[tuple[str, str], ...]:
    """The references in a text, each with the name of its provider."""
    return tuple((reference[0], reference[1]) for reference in REFERENCE.finditer(text))


def _provider(name: str, top: Mapping[str, str]) -> Provider | None:
    given = top.get(f"{CONFIG_PROVIDERS.name}.{name}.class", "").strip() or USUAL_PROVIDERS.get(name, "")
    prefix = f"{CONFIG_PROVIDERS.name}.{name}.param."
    parameters = {key.removeprefix(prefix): text for key, text in top.items() if key.startswith(prefix)}
    allowed = split_list(parameters.get("allowed.paths", ""))
    match given.rpartition(".")[2]:
        case "EnvVarConfigProvider":
            return _Environment(NameFilter((parameters.get("allowlist.pattern", ".*"),)))
        case "FileConfigProvider":
            return lambda path, key: _from_file(path, key, allowed)
        case "DirectoryConfigProvider":
            return lambda path, key: _from_directory(path, key, allowed)
        case "KubernetesSecretConfigProvider" | "KubernetesConfigMapConfigProvider":
            mount = secrets_directory(top.get(SECRETS_DIR.name, ""))
            return lambda path, key: _from_mount(mount, path, key)
        case "VaultConfigProvider" | "VaultSecretProvider":
            return vault_provider(parameters)
        case _:
            return None


def secrets_directory(given: str = "") -> str:
    """Where Kubernetes secrets and config maps are mounted; '' if nowhere."""
    return given.strip() or os.environ.get(SECRETS_DIR_VARIABLE, "").strip()


def _from_mount(mount: str, path: str, key: str) -> str:
    """`namespace/name` and a key are the file `name/key`. A key may be a pattern, such as `*.crt`: then all files that
    match it, one after the other."""
    if not mount:
        raise ValueError(
            f"refers to a Kubernetes secret or config map: set {SECRETS_DIR.name} to the directory where it is mounted"
        )
    name = path.rpartition("/")[2]
    if not name or not key or "/" in key or {name, key} & {".", ".."}:
        raise ValueError("is not of the form ${provider:namespace/name:key}")
    folder = Path(mount) / name
    files = sorted(folder.glob(key)) if set("*?[") & set(key) else [folder / key]
    try:
        texts = [file.read_text() for file in files if file.is_file()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"refers to a file in {folder} that cannot be read: {error}") from None
    if not texts:
        raise ValueError(f"refers to {folder / key}, which does not exist")
    return "\n".join(text.rstrip("\n") for text in texts)


def _from_file(path: str, key: str, allowed: tuple[str, ...]) -> str | None:
    if not path or not _inside(path, allowed):
        return None
    try:
        values = {entry.key: entry.reveal() for entry in read(path)}
    except ConfigError as error:
        raise ValueError(f"refers to a file that cannot be used: {error}") from None
    return values.get(key)


def _from_directory(path: str, key: str, allowed: tuple[str, ...]) -> str | None:
    file = Path(path) / key
    if not path or not key or "/" in key or not _inside(path, allowed) or not file.is_file():
        return None
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"refers to the file {file}, which cannot be read: {error}") from None


def _inside(path: str, allowed: tuple[str, ...]) -> bool:
    real = Path(path).resolve()
    return not allowed or any(real.is_relative_to(Path(parent).resolve()) for parent in allowed)
