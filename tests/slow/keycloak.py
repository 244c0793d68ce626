"""A real Keycloak on loopback. Maven (`mvn`) downloads its distribution once, into Heliograph's cache."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heliograph.sandbox.jars import cache_directory, cache_lock, workspace
from heliograph.sandbox.java import find_java
from ports import free_port
from waiting import PATIENCE, until

AUDIENCE = "kafka"
_VERSION = "26.7.3"
_NAME = f"keycloak-quarkus-dist-{_VERSION}.zip"
_ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{_VERSION}:zip"
_SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
_REALM = "heliograph"


@dataclass(frozen=True)
class Client:
    """A client with a service account. `lifetime` is that of its tokens, in seconds."""

    secret: str
    lifetime: int = 300
    audience: str = AUDIENCE


@dataclass(frozen=True)
class Keycloak:
    port: int

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/realms/{_REALM}"

    @property
    def token_endpoint(self) -> str:
        return f"{self.issuer}/protocol/openid-connect/token"

    @property
    def key_set(self) -> str:
        return f"{self.issuer}/protocol/openid-connect/certs"

    def is_up(self) -> bool:
        try:
            with urllib.request.urlopen(self.key_set, timeout=10) as answer:
                return bool(json.load(answer)["keys"])
        except (OSError, ValueError):
            return False


@contextmanager
def running_keycloak(folder: Path, clients: Mapping[str, Client]) -> Iterator[Keycloak]:
    home = _unpack(_distribution(), folder)
    (home / "data" / "import").mkdir(parents=True)
    (home / "data" / "import" / "realm.json").write_text(json.dumps(_realm(clients)))
    keycloak, management = Keycloak(free_port()), free_port()
    command = ["bash", str(home / "bin" / "kc.sh"), "start-dev", "--import-realm", "--http-host=127.0.0.1"]
    command += [f"--http-port={keycloak.port}", f"--http-management-port={management}"]
    log = folder / "log"
    with log.open("wb") as output:
        # A session of its own: the script starts Java as a child, which must end with it.
        process = subprocess.Popen(
            command,
            env=os.environ | {"JAVA": find_java().executable},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        until(lambda: keycloak.is_up() or process.poll() is not None, lambda: log.read_text()[-2000:])
        assert process.poll() is None, log.read_text()[-2000:]
        yield keycloak
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        shutil.rmtree(home)


def _distribution() -> Path:
    path = cache_directory() / "keycloak" / _NAME
    if not path.exists():
        with cache_lock(), workspace() as unfinished:
            if not path.exists():
                download = unfinished.folder / _NAME
                copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}"]
                subprocess.run([*copy, f"-DoutputDirectory={unfinished.folder}"], check=True, timeout=PATIENCE)
                with download.open("rb") as file:
                    assert hashlib.file_digest(file, "sha256").hexdigest() == _SHA256, f"{_ARTIFACT} is not as expected"
                path.parent.mkdir(exist_ok=True)
                download.rename(path)
    return path


def _unpack(archive: Path, folder: Path) -> Path:
    # Its first start changes its own files: the cache keeps the archive.
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    return folder / f"keycloak-{_VERSION}"


def _realm(clients: Mapping[str, Client]) -> dict[str, Any]:
    rows = [
        {
            "clientId": name,
            "secret": client.secret,
            "publicClient": False,
            "standardFlowEnabled": False,
            "serviceAccountsEnabled": True,
            "attributes": {"access.token.lifespan": str(client.lifetime)},
            "protocolMappers": [
                {
                    "name": "audience",
                    "protocol": "openid-connect",
                    "protocolMapper": "oidc-audience-mapper",
                    "config": {"included.custom.audience": client.audience, "access.token.claim": "true"},
                }
            ],
        }
        for name, client in clients.items()
    ]
    return {"realm": _REALM, "enabled": True, "sslRequired": "none", "clients": rows}
