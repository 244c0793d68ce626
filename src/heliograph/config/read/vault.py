"""Values of a Vault server's key-value store, by its HTTP API: `${vault:secret/kafka/orders:password}`.

Off unless a file declares such a provider. Both versions of the store are read; the `data/` that version 2 has in its
paths may be written or left out.
"""

import json
import os
import ssl
from collections.abc import Callable, Mapping
from functools import cache
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request

from heliograph.wire.security.http import opener

_TIMEOUT = 10.0


def vault_provider(parameters: Mapping[str, str]) -> Callable[[str, str], str | None]:
    """`parameters` as those of Vault providers for Connect: `vault.address`, `vault.token`, `vault.token.file`,
    `vault.namespace`. Without them, Vault's own variables: VAULT_ADDR, VAULT_TOKEN, VAULT_NAMESPACE, VAULT_CACERT."""

    @cache
    def secret(path: str) -> Mapping[str, object]:
        first = _read(parameters, path)
        mount, _, rest = path.strip("/").partition("/")
        found = first if first is not None or not rest else _read(parameters, f"{mount}/data/{rest}")
        if found is None:
            raise ValueError(f"refers to '{path}', which Vault does not have")
        return found

    def value(path: str, key: str) -> str | None:
        text = secret(path).get(key)
        return None if text is None else str(text)

    return value


def _read(parameters: Mapping[str, str], path: str) -> Mapping[str, object] | None:
    """None if there is nothing at this path."""
    address = (_parameter(parameters, "vault.address", "vault.addr") or os.environ.get("VAULT_ADDR", "")).rstrip("/")
    if not address.startswith(("https://", "http://")):
        raise ValueError("refers to Vault: set its parameter vault.address, or VAULT_ADDR, to https://HOST:PORT")
    headers = {"X-Vault-Token": _token(parameters), "X-Vault-Request": "true"}
    if namespace := _parameter(parameters, "vault.namespace") or os.environ.get("VAULT_NAMESPACE", ""):
        headers["X-Vault-Namespace"] = namespace
    context = ssl.create_default_context(cafile=os.environ.get("VAULT_CACERT") or None)
    request = Request(f"{address}/v1/{quote(path.strip('/'))}", headers=headers)
    try:
        with opener(context, uses_proxies=True).open(request, timeout=_TIMEOUT) as response:
            data = json.load(response)["data"]
    except HTTPError as error:
        if error.code == 404:
            return None
        raise ValueError(
            f"refers to '{path}', for which Vault at {address} answers {error.code}: check the token"
        ) from None
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"refers to Vault, which cannot be read at {address}: {type(error).__name__}") from None
    inner = data.get("data")
    return inner if isinstance(inner, dict) and "metadata" in data else data


def _token(parameters: Mapping[str, str]) -> str:
    token = _parameter(parameters, "vault.token") or os.environ.get("VAULT_TOKEN", "")
    if token:
        return token
    file = Path(_parameter(parameters, "vault.token.file") or "~/.vault-token").expanduser()
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"refers to Vault, but there is no token: set VAULT_TOKEN, or write it to {file}") from None


def _parameter(parameters: Mapping[str, str], *names: str) -> str:
    return next((parameters[name].strip() for name in names if parameters.get(name, "").strip()), "")
