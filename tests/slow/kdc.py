"""A Kerberos server (KDC) of MIT Kerberos on loopback, with its own files: nothing of the machine's own is used."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ports import free_port
from waiting import until

REALM = "HELIOGRAPH.TEST"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])  # Debian has servers in sbin


@dataclass(frozen=True)
class Kdc:
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What makes the libraries and commands of Kerberos use this server, and no ticket of anybody else."""
        return {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'tickets'}",
            "KRB5_CLIENT_KTNAME": str(self.folder / "no.keytab"),
        }

    def keytab(self, principal: str) -> Path:
        """Adds a principal with a random key, and returns a file with that key."""
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self.run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path

    def run(self, program: str, *arguments: str) -> None:
        command = [find(program), *arguments]
        done = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"


def find(program: str) -> str:
    path = shutil.which(program, path=_PATH)
    assert path is not None, f"{program} is missing: apt-get install krb5-kdc krb5-admin-server krb5-user"
    return path


def krb5_conf(port: int) -> str:
    """What clients and brokers must know of a server at this port."""
    return (
        f"[libdefaults]\n  default_realm = {REALM}\n  dns_lookup_kdc = false\n  dns_lookup_realm = false\n"
        # Brokers of the sandbox are reached by an IP address, whose name would be looked up otherwise.
        f"  rdns = false\n  udp_preference_limit = 1\n"
        f"[realms]\n  {REALM} = {{\n    kdc = 127.0.0.1:{port}\n  }}\n"
    )


@contextmanager
def running_kdc(folder: Path) -> Iterator[Kdc]:
    for program in _PROGRAMS:
        find(program)
    port, kdc = free_port(), Kdc(folder)
    (folder / "krb5.conf").write_text(krb5_conf(port))
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\n  kdc_listen = 127.0.0.1:{port}\n  kdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n  {REALM} = {{\n    database_name = {folder}/principal\n    key_stash_file = {folder}/stash\n"
        f"    acl_file = {folder}/acl\n  }}\n"
        f"[logging]\n  kdc = FILE:{folder}/kdc.log\n"
    )
    kdc.run("kdb5_util", "create", "-r", REALM, "-s", "-P", "password of the database")
    with (folder / "output").open("wb") as output:
        command = [find("krb5kdc"), "-n", "-r", REALM]
        process = subprocess.Popen(command, env=os.environ | kdc.environment, stdout=output, stderr=output)
    try:
        log = folder / "kdc.log"
        until(lambda: log.exists() and "commencing operation" in log.read_text(), seconds=30)
        yield kdc
    finally:
        process.terminate()
        process.wait(timeout=60)
