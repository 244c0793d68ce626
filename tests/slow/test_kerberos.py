"""Logins with GSSAPI at a real broker, with tickets of a real Kerberos server. `make test-kerberos` runs this file."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.model.flow import Cluster
from heliograph.model.security import GSSAPI, KerberosLogin, Sasl, Security
from heliograph.sandbox import ClusterSpec, Sandbox
from secured import failure, reach, stays_connected
from slow.kdc import REALM, Kdc, krb5_conf, running_kdc

SESSION = 4  # seconds until the broker ends a session
SERVICE = f"kafka/127.0.0.1@{REALM}"
MIRROR = f"mirror@{REALM}"


@dataclass(frozen=True)
class Kerberized:
    """A cluster with a listener for GSSAPI, and the keytab of user `mirror`."""

    kdc: Kdc
    bootstrap: str
    keytab: Path

    def cluster(self, **login: str) -> Cluster:
        host, port = self.bootstrap.split(":")
        security = Security(sasl=Sasl(GSSAPI, KerberosLogin(**login)))
        return Cluster("A", ((host, int(port)),), security=security, request_timeout=10.0)


@pytest.fixture(scope="module")
def kerberized(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc, pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
        listener = "listener.name.kerberos."
        spec = ClusterSpec(
            listeners={"KERBEROS": "SASL_PLAINTEXT"},
            settings={
                listener + "sasl.enabled.mechanisms": GSSAPI,
                listener + "gssapi.sasl.jaas.config": (
                    f'{module} keyTab="{kdc.keytab(SERVICE)}" principal="{SERVICE}";'
                ),
                listener + "sasl.kerberos.service.name": "kafka",
                listener + "gssapi.connections.max.reauth.ms": str(SESSION * 1000),
            },
            jvm_flags=(f"-Djava.security.krb5.conf={kdc.folder / 'krb5.conf'}",),
            fast_start=True,
        )
        (cluster,) = sandbox.start({"KERBEROS": spec})
        yield Kerberized(kdc, cluster.bootstrap_of("KERBEROS"), kdc.keytab(MIRROR))


def test_a_keytab_is_enough_to_log_in(kerberized: Kerberized) -> None:
    reach(kerberized.cluster(principal=MIRROR, keytab=str(kerberized.keytab)))


def test_the_tickets_of_kinit_are_used_without_a_keytab(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tickets = f"FILE:{tmp_path / 'tickets'}"
    kerberized.kdc.run("kinit", "-c", tickets, "-k", "-t", str(kerberized.keytab), MIRROR)
    monkeypatch.setenv("KRB5CCNAME", tickets)
    reach(kerberized.cluster())


def test_a_login_is_repeated_before_the_broker_ends_the_session(kerberized: Kerberized) -> None:
    asyncio.run(stays_connected(kerberized.cluster(principal=MIRROR, keytab=str(kerberized.keytab)), SESSION))


def test_the_first_principal_of_a_keytab_is_used_where_none_is_named(kerberized: Kerberized) -> None:
    reach(kerberized.cluster(keytab=str(kerberized.keytab)))


def test_a_keytab_that_is_of_no_use(kerberized: Kerberized, tmp_path: Path) -> None:
    old, missing, keytab = f"old@{REALM}", tmp_path / "missing.keytab", kerberized.keytab
    old_keytab = kerberized.kdc.keytab(old)
    kerberized.kdc.run("kadmin.local", "-r", REALM, "cpw", "-randkey", old)
    assert failure(kerberized.cluster(principal=f"nobody@{REALM}", keytab=str(keytab))) == (
        f"sasl.jaas.config: there is no Kerberos ticket of nobody@{REALM} for kafka/127.0.0.1: the keytab has no key "
        f"of this principal: check principal, KDC and klist -k {keytab}"
    )
    assert "Decrypt integrity check failed" in failure(kerberized.cluster(principal=old, keytab=str(old_keytab)))
    # mirror has a ticket from an earlier login.
    assert failure(kerberized.cluster(principal=MIRROR, keytab=str(missing))) == (
        f"sasl.jaas.config: the keytab {missing} cannot be read: No such file or directory: check keyTab and the "
        "file's permissions"
    )


def test_no_ticket_and_the_ticket_of_another_principal(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tickets = tmp_path / "tickets"
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tickets}")
    assert failure(kerberized.cluster()) == (
        "sasl.jaas.config: there is no Kerberos ticket for kafka/127.0.0.1: No Kerberos credentials available "
        f"(default cache: FILE:{tickets}): run kinit, or set keyTab"
    )
    kerberized.kdc.run("kinit", "-c", str(tickets), "-k", "-t", str(kerberized.keytab), MIRROR)
    assert f"there is no Kerberos ticket of other@{REALM} for kafka/127.0.0.1" in failure(
        kerberized.cluster(principal=f"other@{REALM}")
    )
    reach(kerberized.cluster(principal=MIRROR))


def test_a_wrong_name_of_the_service(kerberized: Kerberized) -> None:
    login = {"principal": MIRROR, "keytab": str(kerberized.keytab)}
    missing = f"Server broker/127.0.0.1@{REALM} not found in Kerberos database"
    assert missing in failure(kerberized.cluster(**login, service_name="broker"))
    # The service exists, but the broker cannot read its tickets.
    kerberized.kdc.keytab(f"other/127.0.0.1@{REALM}")
    assert f"the broker refuses {MIRROR} with GSSAPI" in failure(kerberized.cluster(**login, service_name="other"))


def test_a_kerberos_server_that_is_down(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed_port: int
) -> None:
    keytab, config = kerberized.kdc.keytab(f"late@{REALM}"), tmp_path / "krb5.conf"
    config.write_text(krb5_conf(closed_port))
    monkeypatch.setenv("KRB5_CONFIG", str(config))
    assert "Cannot contact any KDC for realm" in failure(
        kerberized.cluster(principal=f"late@{REALM}", keytab=str(keytab))
    )
