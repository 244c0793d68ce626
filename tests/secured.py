"""Two clusters with all kinds of secured listeners at once, and how kafka-python and Heliograph log in to them.

User `admin` may do everything, the others need ACLs: `writer` and `rotated` get some in tests, `mirror` has those of
the sandbox's tests only. The plaintext `bootstrap` of both is for a test's preparations.
"""

import asyncio
import json
import re
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.metadata import MetadataRequest

from heliograph.config.resolve.client_config import client_security
from heliograph.model.flow import Cluster
from heliograph.sandbox import ADMIN, MIRROR, Authority, ClusterSpec, Identity, Sandbox, SandboxCluster, write_key_store
from heliograph.sandbox.certificates import LOOPBACK
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import Unreachable
from logs import Log, Pair

USERS = (MIRROR, ADMIN, "reader", "writer", "rotated")
ALL_KINDS = ("scram", "mtls", "plain", "oauth", "tls", "sasl-plaintext")

# Seconds after which cluster `a` ends a session: with SCRAM-SHA-256 on the listener without TLS, and with OAUTHBEARER.
SHORT_SESSION = 8
_SHORT_SESSIONS = {
    f"listener.name.{mechanism}.connections.max.reauth.ms": str(SHORT_SESSION * 1000)
    for mechanism in ("sasl_plaintext.scram-sha-256", "oauth.oauthbearer")
}

# Listeners with TLS whose certificates clients must refuse: `b.bootstrap_of("EXPIRED")`.
FAULTY = ("EXPIRED", "NOT_YET_VALID", "OTHER_HOST", "OTHER_AUTHORITY")


@dataclass(frozen=True)
class SecuredPair:
    a: SandboxCluster
    b: SandboxCluster

    @property
    def logs(self) -> Pair:
        """Both clusters without a login, with all rights."""
        return Pair(Log(self.a.bootstrap), Log(self.b.bootstrap))


def start_secured(sandbox: Sandbox) -> SecuredPair:
    """`b` has the faulty listeners, too."""
    settings = {"log.cleaner.backoff.ms": "300", "log.retention.ms": "-1", "quota.window.num": "2"}
    specs = {
        "SA": ClusterSpec(security=ALL_KINDS, users=USERS, settings=settings | _SHORT_SESSIONS, fast_start=True),
        "SB": ClusterSpec(
            security=ALL_KINDS,
            users=USERS,
            settings=settings | _faulty_settings(sandbox),
            listeners=dict.fromkeys(FAULTY, "SSL"),
            fast_start=True,
        ),
    }
    a, b = sandbox.start(specs)
    return SecuredPair(a, b)


def _faulty_settings(sandbox: Sandbox) -> dict[str, str]:
    now, day, authority = datetime.now(UTC), timedelta(days=1), sandbox.authority
    identities: dict[str, Identity] = {
        "EXPIRED": authority.issue("broker", hosts=LOOPBACK, valid_until=now - day),
        "NOT_YET_VALID": authority.issue("broker", hosts=LOOPBACK, valid_from=now + day),
        "OTHER_HOST": authority.issue("broker", hosts=("elsewhere.example",)),
        "OTHER_AUTHORITY": Authority().issue("broker", hosts=LOOPBACK),
    }
    settings = {}
    for name, identity in identities.items():
        path = sandbox.folder / f"{name.lower()}.pem"
        write_key_store(path, identity)
        settings[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(path)
    return settings


def kafka_python(settings: Mapping[str, str], user: str = MIRROR, password: str = "") -> dict[str, Any]:
    """The `client_settings` of a sandbox's cluster as arguments of kafka-python's clients. They need PEM stores."""
    arguments: dict[str, Any] = {
        "bootstrap_servers": settings["bootstrap.servers"].split(","),
        "security_protocol": settings["security.protocol"],
    }
    if trust := settings.get("ssl.truststore.location"):
        arguments["ssl_cafile"] = trust
    if key := settings.get("ssl.keystore.location"):
        arguments |= {"ssl_certfile": key, "ssl_keyfile": key}
    if mechanism := settings.get("sasl.mechanism"):
        arguments["sasl_mechanism"] = mechanism
        if url := settings.get("sasl.oauthbearer.token.endpoint.url"):
            arguments["sasl_oauth_token_provider"] = Token(fetch_token(url, user, password))
        else:
            arguments |= {"sasl_plain_username": user, "sasl_plain_password": password}
    return arguments


def login(cluster: SandboxCluster, kind: str, user: str = MIRROR, mechanism: str | None = None) -> dict[str, Any]:
    """kafka-python's arguments for a user with the right password."""
    settings = cluster.security.client_settings(user, kind, mechanism=mechanism)
    return kafka_python(settings, user, cluster.security.passwords[user])


def fetch_token(url: str, client: str, secret: str) -> str:
    """Raises HTTPError if the endpoint refuses."""
    form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
    with urllib.request.urlopen(url, urlencode(form).encode(), timeout=20) as answer:
        token: str = json.load(answer)["access_token"]
        return token


class Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def refused_logins(cluster: SandboxCluster, address: str) -> int:
    """How many logins or TLS handshakes at this `host:port` have failed, by the log of the first broker."""
    return Path(cluster.folder(1), "server.log").read_text().count(f"(channelId={address}-")


def cluster_of(settings: Mapping[str, str], alias: str = "A") -> Cluster:
    """A cluster as Heliograph's clients reach it with these `client_settings`."""
    addresses = [address.rsplit(":", 1) for address in settings["bootstrap.servers"].split(",")]
    servers = tuple((host, int(port)) for host, port in addresses)
    return Cluster(alias, servers, security=client_security(settings), request_timeout=10.0)


def reach(cluster: Cluster) -> None:
    """Connects to a cluster and to one of its brokers. Raises Unreachable."""

    async def main() -> None:
        client = ClusterClient(cluster)
        try:
            await client.connect()
            node = next(iter(client.brokers))
            await client.connection(node)  # the brokers' own address is secured, too
        finally:
            client.close()

    asyncio.run(main())


def failure(cluster: Cluster) -> str:
    """The message about a cluster that is not reached, without its address."""
    with pytest.raises(Unreachable) as raised:
        reach(cluster)
    return re.sub(r"^(cluster A, )?127\.0\.0\.1:\d+: ", "", str(raised.value))


async def stays_connected(cluster: Cluster, session: float) -> None:
    """Sends requests on one connection for longer than a session of so many seconds."""
    client = ClusterClient(cluster)
    await client.connect()
    connection = await client.connection(next(iter(client.brokers)))
    end = time.monotonic() + 1.1 * session
    while time.monotonic() < end:
        await connection.request(MetadataRequest(topics=[], allow_auto_topic_creation=False), newest=12)
        await asyncio.sleep(0.02)
    assert not connection.closed
    client.close()
