"""Values that references refer to are read again: flows that use them are reloaded, the others are not touched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from heliograph.config.read.formats import read_all
from heliograph.config.resolve.deployment import assemble
from heliograph.model.connect_records import PAUSED
from heliograph.model.flow import Cluster, Flow
from heliograph.model.security import PasswordLogin
from heliograph.service.connectors import Connectors, Worker
from heliograph.service.file_flows import FileFlows, keep_refreshing
from heliograph.service.supervisor import Supervisor

from .test_connectors import FakeSupervisor, config

JAAS = 'x.PlainLoginModule required username="me" password="${{file:{}:password}}";'
FILE = """\
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
emit.heartbeats.enabled = false
A->B.enabled = true
A->C.enabled = true
B->C.enabled = true
config.providers = file
A.security.protocol = SASL_SSL
A.sasl.mechanism = PLAIN
"""


def password(cluster: Cluster) -> str:
    assert cluster.security.sasl is not None
    assert isinstance(cluster.security.sasl.login, PasswordLogin)
    return cluster.security.sasl.login.password.reveal()


class Mirror:
    """The flows of a file whose secret is in another one, on a supervisor that runs nothing."""

    def __init__(self, folder: Path, added: str = "") -> None:
        self.secret, self.file = folder / "secret.properties", folder / "mm2.properties"
        self.rotate("one")
        self.file.write_text(f"{FILE}A.sasl.jaas.config = {JAAS.format(self.secret)}\n{added}")
        self.supervisor = FakeSupervisor()
        self.connectors = Connectors(cast(Supervisor, self.supervisor), Worker("w"))
        document = read_all([self.file])
        self.of_files = FileFlows([self.file], document, assemble(document), self.connectors)

    def rotate(self, text: str) -> None:
        self.secret.write_text(f"password = {text}\n")

    def refresh(self) -> None:
        asyncio.run(self.of_files.refresh())

    def flows(self) -> dict[str, Flow]:
        return {flow.name: flow for flow in self.supervisor.flows}

    def passwords(self) -> tuple[str, str]:
        return password(self.flows()["A->B"].source), password(self.flows()["A->C"].source)


def test_a_rotated_secret_changes_the_flows_that_use_it(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    before = mirror.flows()
    mirror.refresh()
    assert mirror.flows() == before
    mirror.rotate("two")
    mirror.refresh()
    assert mirror.passwords() == ("two", "two")
    assert mirror.flows()["B->C"] == before["B->C"]


def test_a_flow_may_ask_not_to_be_reloaded(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path, "A->B.config.action.reload = none\n")
    mirror.rotate("two")
    mirror.refresh()
    assert mirror.passwords() == ("one", "two")
    mirror.of_files.reload()
    assert mirror.passwords() == ("two", "two")


def test_a_secret_that_cannot_be_read_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mirror = Mirror(tmp_path)
    mirror.secret.unlink()
    mirror.refresh()
    assert mirror.passwords() == ("one", "one")
    assert "the flows run on with the secrets that they have" in caplog.text
    mirror.rotate("two")
    mirror.refresh()
    assert mirror.passwords() == ("two", "two")
    assert "two" not in caplog.text


def test_only_secrets_are_read_again_and_what_is_paused_stays_paused(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    asyncio.run(mirror.connectors.set_state("A->B.MirrorSourceConnector", PAUSED))
    mirror.file.write_text(mirror.file.read_text() + "A->C.tasks.max = 7\n")
    mirror.rotate("two")
    mirror.refresh()
    assert mirror.passwords() == ("two", "two")
    assert mirror.flows()["A->C"].tasks_max == 1
    assert "source" not in mirror.flows()["A->B"].parts
    mirror.of_files.reload()
    assert mirror.flows()["A->C"].tasks_max == 7


def test_the_interval_is_a_setting(tmp_path: Path) -> None:
    assert Mirror(tmp_path).of_files.refresh_seconds == 30
    assert Mirror(tmp_path, "heliograph.secrets.refresh.seconds = 0\n").of_files.refresh_seconds == 0


def test_refreshing_goes_on_after_a_failure_and_never_begins_without_an_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[int] = []

    async def refresh() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("no luck")
        raise asyncio.CancelledError

    async def main() -> None:
        await keep_refreshing(0, refresh)
        assert not calls
        with pytest.raises(asyncio.CancelledError):
            await keep_refreshing(0.001, refresh)

    asyncio.run(main())
    assert len(calls) == 2
    assert "secrets could not be read again" in caplog.text


@pytest.mark.parametrize(("action", "after"), [("restart", "two"), ("none", "one")])
def test_flows_of_posted_connectors_are_resolved_again(tmp_path: Path, action: str, after: str) -> None:
    secret = tmp_path / "secret.properties"
    secret.write_text("password = one\n")
    supervisor = FakeSupervisor()
    connectors = Connectors(cast(Supervisor, supervisor), Worker("w", {"config.providers": "file"}))

    async def main() -> None:
        await connectors.create(
            "x",
            config(
                "Source",
                source_cluster_security_protocol="SASL_SSL",
                source_cluster_sasl_mechanism="PLAIN",
                source_cluster_sasl_jaas_config=JAAS.format(secret),
                config_action_reload=action,
            ),
        )
        assert password(supervisor.flows[0].source) == "one"
        secret.unlink()
        await connectors.refresh()
        assert password(supervisor.flows[0].source) == "one"
        secret.write_text("password = two\n")
        await connectors.refresh()
        assert password(supervisor.flows[0].source) == after

    asyncio.run(main())
