"""The commands that call the REST API log in with a file or the environment, over TLS."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from heliograph.cli import app
from heliograph.model.rest_settings import REQUIRED, Listener, ListenerTls, RestSettings
from heliograph.model.security import PEM, KeyStore, TrustStore
from monitoring.test_troubleshooting import blocks
from rest.certificates import Issuer, issuer
from rest.served_app import serving

PASSWORD = "open sesame"


@dataclass(frozen=True)
class Secured:
    url: str
    folder: Path
    ca: Issuer

    def run(self, *arguments: object, **env: str) -> Result:
        return CliRunner().invoke(app, [*map(str, arguments), "--rest", self.url], env=env)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("commands")
    ca = issuer(folder)
    (folder / "users").write_text(f"alice={PASSWORD}\n")
    (folder / "credentials").write_text(f"user=alice\npassword={PASSWORD}\n")
    (folder / "wrong").write_text("user=alice\npassword=guess\n")
    (folder / "tokens").write_text("ci=a-token\n")
    (folder / "token").write_text("token=a-token\n")
    (folder / "empty").write_text("user=\n")
    tls = ListenerTls(KeyStore(PEM, str(ca.issue(folder / "server.pem", "localhost"))))
    users, tokens = str(folder / "users"), str(folder / "tokens")
    with serving(RestSettings((Listener("127.0.0.1", 0, tls),), users=users, tokens=tokens)) as client:
        yield Secured(client.url, folder, ca)


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("top", "--once"),
        ("connectors",),
        ("pause", "ab"),
        ("resume", "A->B"),
        ("restart", "ab"),
        ("logs", "level"),
    ],
)
def test_every_command_takes_credentials_and_certificates(secured: Secured, command: tuple[str, ...]) -> None:
    ca = ("--ca", secured.ca.file)
    assert secured.run(*command, *ca, "--credentials", secured.folder / "credentials").exit_code == 0
    assert secured.run(*command, *ca, "--credentials", secured.folder / "token").exit_code == 0
    refused = secured.run(*command, *ca)
    assert refused.exit_code == 1
    assert "User cannot access the resource. The login is needed: --credentials FILE names it" in refused.output


def test_credentials_come_from_a_file_or_the_environment(secured: Secured) -> None:
    ca = {"HELIOGRAPH_REST_CA": str(secured.ca.file)}
    user = {"HELIOGRAPH_REST_USER": "alice", "HELIOGRAPH_REST_PASSWORD": PASSWORD}
    assert json.loads(secured.run("connectors", "--json", **ca, **user).stdout).keys() == {"ab", "cd"}
    assert secured.run("connectors", **ca, HELIOGRAPH_REST_TOKEN="a-token").exit_code == 0
    file = str(secured.folder / "wrong")
    wrong = secured.run("connectors", **ca, **user, HELIOGRAPH_REST_CREDENTIALS=file)
    assert (wrong.exit_code, "The login is wrong" in wrong.output) == (1, True)
    nothing = secured.run("connectors", "--credentials", secured.folder / "empty", **ca)
    assert "has neither user=NAME and password=PASSWORD nor token=TOKEN" in nothing.output
    missing = secured.run("connectors", "--credentials", secured.folder / "none", **ca)
    assert (missing.exit_code, "there is no such file" in missing.output) == (2, True)


def test_an_issuer_that_is_not_trusted_is_reported_with_a_remedy(secured: Secured) -> None:
    done = secured.run("connectors")
    assert (done.exit_code, "Does --ca name the certificates of its issuer?" in done.output) == (2, True)


def test_no_password_on_the_command_line(secured: Secured) -> None:
    address = f"https://alice:{PASSWORD}@127.0.0.1:1"
    done = CliRunner().invoke(app, ["connectors", "--rest", address])
    assert done.exit_code == 2
    assert "use --credentials FILE" in done.output
    assert PASSWORD not in done.output


def test_a_login_without_tls_is_warned_about() -> None:
    done = CliRunner().invoke(
        app, ["connectors", "--rest", "http://host.invalid:1"], env={"HELIOGRAPH_REST_TOKEN": "a-token"}
    )
    assert "the login is sent to http://host.invalid:1 without TLS; use https://" in done.output
    assert "a-token" not in done.output


def test_refusals_are_those_of_the_troubleshooting_page(tmp_path: Path) -> None:
    ca = issuer(tmp_path)
    users, roles = tmp_path / "users", tmp_path / "roles"
    users.write_text("bob=builder\n")
    roles.write_text("bob=viewer\n")
    (tmp_path / "right").write_text("user=bob\npassword=builder\n")
    (tmp_path / "wrong").write_text("user=bob\npassword=guess\n")
    tls = ListenerTls(KeyStore(PEM, str(ca.issue(tmp_path / "server.pem", "localhost"))))
    listeners = (Listener("127.0.0.1", 0, tls),)
    with serving(RestSettings(listeners, users=str(users), roles=str(roles))) as client:

        def said(*arguments: str) -> str:
            return CliRunner().invoke(app, [*arguments, "--rest", client.url]).output

        ca_option = ("--ca", str(ca.file))
        outputs = (
            said("connectors", *ca_option),
            said("connectors", *ca_option, "--credentials", str(tmp_path / "wrong")),
            said("pause", "ab", *ca_option, "--credentials", str(tmp_path / "right")),
            said("connectors"),
        )
    page = blocks()["The REST API refuses a call"]
    assert "".join(map(_same, outputs)).strip() == _same(page)


def _same(text: str) -> str:
    """Without the numbers of ports and of lines in Python's own source."""
    return re.sub(r"_ssl\.c:\d+|127\.0\.0\.1:\d+", "", text)


def test_a_client_certificate_is_a_login(tmp_path: Path) -> None:
    ca = issuer(tmp_path)
    server, mine = ca.issue(tmp_path / "server.pem", "localhost"), ca.issue(tmp_path / "me.pem", "me")
    tls = ListenerTls(KeyStore(PEM, str(server)), trust=TrustStore(PEM, str(ca.file)), client_auth=REQUIRED)
    with serving(RestSettings((Listener("127.0.0.1", 0, tls),))) as client:
        options = ["connectors", "--rest", client.url, "--ca", str(ca.file)]
        assert CliRunner().invoke(app, [*options, "--cert", str(mine)]).exit_code == 0
        refused = CliRunner().invoke(app, options)
        assert refused.exit_code == 2
        assert "client certificate (--cert, --key)" in refused.output or "Is Heliograph running" in refused.output
        unusable = CliRunner().invoke(app, [*options, "--cert", str(tmp_path / "none.pem")])
        assert (unusable.exit_code, "a file cannot be used" in unusable.output) == (2, True)
