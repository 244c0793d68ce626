"""Who may call the REST API: names and passwords, tokens, roles for all flows or for some."""

import asyncio
import hashlib
import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from typer.testing import CliRunner

from heliograph.cli import app
from heliograph.model.rest_settings import Jwks, Listener, RestSettings
from heliograph.model.secret import Secret
from heliograph.rest.authentication import Authenticator
from heliograph.rest.json_web_tokens import KeySetUnavailable, TokenChecker
from heliograph.rest.passwords import hashed, matches
from heliograph.rest.roles import ALL_FLOWS, with_roles
from rest.served_app import Client, config, serving

REFUSED = {"error_code": 401, "message": "User cannot access the resource."}


def _file(folder: Path, name: str, *lines: str) -> str:
    file = folder / name
    file.write_text("\n".join(lines))
    return str(file)


# --- names and passwords ------------------------------------------------------------------------------------------


def test_callers_need_a_name_and_a_password(tmp_path: Path) -> None:
    users = _file(tmp_path, "users", "alice=wonder", f"bob={hashed(Secret('builder'))}", "carol=with:colon ")
    with serving(RestSettings(users=users)) as client:
        for path in ("/", "/health", "/connectors", "/metrics", "/admin/loggers", "/heliograph/v1/flows", "/nowhere"):
            answer = client("GET", path)
            assert (answer.status, answer.body) == (401, REFUSED)
            assert answer.headers["www-authenticate"] == 'Basic realm="heliograph", charset="UTF-8"'
        for name, password in (("alice", "wonder"), ("bob", "builder"), ("bob", "builder"), ("carol", "with:colon ")):
            assert client.as_user(name, password)("GET", "/connectors").body == ["ab", "cd"]
            assert client.as_user(name, password)("PUT", "/connectors/ab/pause").status == 202
        for name, password in (("alice", "builder"), ("bob", "wonder"), ("nobody", ""), ("", ""), ("alice", "")):
            assert client.as_user(name, password)("GET", "/connectors").body == REFUSED
        for header in ("Basic", "Basic !!!", "Basic YWxpY2U=", "Bearer wonder", "Digest x", "\xff"):
            assert replace(client, authorization=header)("GET", "/connectors").status == 401


def test_users_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice=wonder\n")
    with serving(RestSettings(users=str(users))) as client:
        assert client.as_user("alice", "wonder")("GET", "/connectors").status == 200
        users.write_text("alice=another\n")
        assert client.as_user("alice", "wonder")("GET", "/connectors").status == 401
        assert client.as_user("alice", "another")("GET", "/connectors").status == 200
        users.write_text("")
        assert client.as_user("", "")("GET", "/connectors").status == 401
        assert client.as_user("alice", "another")("GET", "/connectors").status == 200, "the last version stays in use"


@pytest.mark.parametrize("text", ["", "alice=\n", "=x\n"])
def test_a_file_that_would_let_everyone_in_is_refused(tmp_path: Path, text: str) -> None:
    """Connect accepts any password if its file is empty."""
    with pytest.raises(ValueError, match=r"heliograph\.rest\.users: .* has no line name=secret, or an empty one"):
        Authenticator(RestSettings(users=_file(tmp_path, "users", text)))


def test_a_file_with_a_role_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"roles: alice: 'admin' is no role: write viewer, operator"):
        Authenticator(RestSettings(roles=_file(tmp_path, "roles", "alice=admin")))
    with pytest.raises(ValueError, match="there is no such file"):
        Authenticator(RestSettings(roles=str(tmp_path / "none")))


def test_a_hash_matches_its_password_only() -> None:
    stored = Secret(hashed(Secret("péssword")))
    assert stored != Secret(hashed(Secret("péssword"))), "the salt differs"
    assert matches(Secret("péssword"), stored)
    assert not matches(Secret("password"), stored)
    assert not matches(Secret("x"), Secret("scrypt:x"))
    assert not matches(Secret("scrypt:"), Secret("scrypt:"))


def test_the_command_prints_a_line_for_the_file_of_users(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["rest-password", "alice"], input="wonder\n")
    assert (done.exit_code, done.output.startswith("alice=scrypt:")) == (0, True)
    with serving(RestSettings(users=_file(tmp_path, "users", done.output))) as client:
        assert client.as_user("alice", "wonder")("GET", "/connectors").status == 200
    assert CliRunner().invoke(app, ["rest-password", "a=b"], input="wonder\n").exit_code == 2
    assert CliRunner().invoke(app, ["rest-password", "alice"], input="\n").exit_code == 2


# --- roles --------------------------------------------------------------------------------------------------------


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[Client]:
    """Passwords are the names."""
    names = ("viewer", "operator", "tenant", "reader", "nobody")
    users = _file(tmp_path, "users", *(f"{name}={name}" for name in names))
    roles = _file(
        tmp_path,
        "roles",
        "viewer=viewer",
        "operator = operator",
        "tenant=viewer:A->B, operator:A->B",
        "reader=viewer:A->B",
    )
    with serving(RestSettings(users=users, roles=roles)) as client:
        yield client


def _status(client: Client, name: str, method: str, path: str, body: Any = None) -> int:
    return client.as_user(name, name)(method, path, body).status


AB, CD = "/heliograph/v1/flows/A-%3EB", "/heliograph/v1/flows/C-%3ED"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/connectors", "viewer operator tenant reader"),
        ("GET", "/health", "viewer operator tenant reader"),
        ("GET", "/connector-plugins", "viewer operator tenant reader"),
        ("GET", "/connector-plugins/MirrorSourceConnector/config", "viewer operator tenant reader"),
        ("PUT", "/connector-plugins/MirrorSourceConnector/config/validate", "operator tenant"),
        ("GET", "/connectors/ab/config", "viewer operator tenant reader"),
        ("GET", "/connectors/cd/config", "viewer operator"),
        ("GET", f"{AB}", "viewer operator tenant reader"),
        ("GET", f"{CD}/mirrors", "viewer operator"),
        ("GET", "/metrics", "viewer operator"),
        ("GET", "/admin/loggers", "viewer operator"),
        ("PUT", "/connectors/ab/pause", "operator tenant"),
        ("PUT", "/connectors/cd/pause", "operator"),
        ("PUT", f"{AB}/resume", "operator tenant"),
        ("PUT", f"{CD}/resume", "operator"),
        ("PUT", "/connectors//ab/pause", "operator"),
        ("PUT", "/connectors/none/pause", "operator"),
        ("POST", "/connectors/cd/restart", "operator"),
        ("POST", "/heliograph/v1/flows", "operator"),
        ("PUT", "/nowhere", "operator"),
    ],
)
def test_a_role_allows_its_requests(tenants: Client, method: str, path: str, allowed: str) -> None:
    names = ("viewer", "operator", "tenant", "reader", "nobody")
    statuses = {name: _status(tenants, name, method, path) for name in names}
    assert [name for name, status in statuses.items() if status != 403] == allowed.split(), statuses


def test_lists_contain_what_a_caller_may_see(tenants: Client) -> None:
    tenant = tenants.as_user("tenant", "tenant")
    assert tenant("GET", "/connectors").body == ["ab"]
    assert list(tenant("GET", "/connectors?expand=info&expand=status").body) == ["ab"]
    assert [flow["name"] for flow in tenant("GET", "/heliograph/v1/flows").body] == ["A->B"]
    assert tenants.as_user("viewer", "viewer")("GET", "/connectors").body == ["ab", "cd"]


def test_an_operator_of_a_flow_posts_connectors_of_that_flow_only(tenants: Client) -> None:
    tenant = tenants.as_user("tenant", "tenant")
    own, others = config("A", "B", topics="u"), config("C", "D", topics="u")
    assert tenant("PUT", "/connectors/ab/config", own).status == 200
    refused = tenant("PUT", "/connectors/ab/config", others)
    assert (refused.status, refused.body["message"]) == (403, "tenant is no operator of C->D")
    assert tenant("PATCH", "/connectors/ab/config", {"target.cluster.alias": "D"}).status == 403
    assert tenant("PATCH", "/connectors/ab/config", {"target.cluster.alias": None}).status == 403
    assert tenant("PUT", "/connectors/cd/config", own).status == 403
    assert tenant("PUT", "/connectors/new/config", others).status == 403
    assert tenant("POST", "/connectors", {"name": "new", "config": others}).status == 403
    assert tenant("DELETE", "/connectors/cd").status == 403
    assert tenant("DELETE", "/connectors/ab").status == 204
    assert tenant("POST", "/connectors", {"name": "new", "config": own}).status == 201


def test_a_role_of_everyone_applies_to_each_caller_who_has_logged_in(tmp_path: Path) -> None:
    settings = RestSettings(users=_file(tmp_path, "users", "alice=wonder"), roles=_file(tmp_path, "roles", "*=viewer"))
    with serving(settings) as client:
        assert client.as_user("alice", "wonder")("GET", "/metrics").status == 200
        assert client.as_user("alice", "wonder")("PUT", "/connectors/ab/pause").status == 403
        assert client("GET", "/metrics").status == 401


def test_roles_are_words() -> None:
    caller = with_roles("x", ["viewer", " operator:A->B "])
    assert (caller.may_see("any"), caller.may_operate("A->B"), caller.may_operate("B->A")) == (True, True, False)
    assert not caller.may_operate(ALL_FLOWS)
    assert not with_roles("x", []).has_a_role


def test_open_paths_need_no_login(tmp_path: Path) -> None:
    users = _file(tmp_path, "users", "alice=wonder")
    with serving(RestSettings(users=users, open_paths=frozenset({"/health", "/metrics"}))) as client:
        assert (client("GET", "/health").status, client("GET", "/metrics").status) == (200, 200)
        assert client("POST", "/metrics").status == 401
        assert client("GET", "/metrics/").status == 401
        assert client("GET", "/connectors").status == 401


# --- tokens -------------------------------------------------------------------------------------------------------


def test_bearer_tokens_of_a_file_have_the_roles_of_their_name(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"hidden-token").hexdigest()
    settings = RestSettings(
        tokens=_file(tmp_path, "tokens", "prometheus=plain-token", f"ci=sha256:{digest}"),
        roles=_file(tmp_path, "roles", "prometheus=viewer", "ci=operator"),
    )
    with serving(settings) as client:
        prometheus, ci = (client.with_token(Secret(token)) for token in ("plain-token", "hidden-token"))
        assert prometheus("GET", "/metrics").status == 200
        assert prometheus("PUT", "/connectors/ab/pause").status == 403
        assert ci("PUT", "/connectors/ab/pause").status == 202
        for wrong in ("plain", f"sha256:{digest}", digest, "", "prometheus"):
            answer = client.with_token(Secret(wrong))("GET", "/metrics")
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


class Provider:
    """An identity provider: an address with keys, which can be replaced."""

    def __init__(self) -> None:
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self.calls = 0
        self.is_down = False

    def add_key(self, key_id: str) -> None:
        self.keys[key_id] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def document(self) -> bytes:
        self.calls += 1
        keys = [
            json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) | {"kid": key_id, "use": "sig"}
            for key_id, key in self.keys.items()
        ]
        return json.dumps({"keys": keys}).encode()

    def token(self, key_id: str = "k1", **claims: Any) -> Secret:
        whole = {"sub": "alice", "aud": "heliograph", "iss": "https://idp", "exp": time.time() + 600} | claims
        present = {name: value for name, value in whole.items() if value is not None}
        return Secret(jwt.encode(present, self.keys[key_id], algorithm="RS256", headers={"kid": key_id}))


@contextmanager
def _publishing(provider: Provider) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, document = 500 if provider.is_down else 200, provider.document()
            self.send_response(status)  # from here on the client goes on
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/keys"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def provider() -> Provider:
    made = Provider()
    made.add_key("k1")
    return made


@pytest.fixture(scope="module")
def with_provider(provider: Provider) -> Iterator[Client]:
    with _publishing(provider) as url:
        with serving(RestSettings(jwks=Jwks(url, "heliograph", "https://idp", "realm_access.roles"))) as client:
            yield client


def test_a_token_of_the_provider_has_the_roles_of_its_claim(provider: Provider, with_provider: Client) -> None:
    def statuses(*roles: str) -> tuple[int, int]:
        token = provider.token(realm_access={"roles": list(roles)})
        caller = with_provider.with_token(token)
        return caller("GET", "/connectors/ab/status").status, caller("PUT", "/connectors/ab/pause").status

    assert statuses("offline_access", "viewer") == (200, 403)
    assert statuses("operator:A->B") == (200, 202)
    assert statuses("operator:C->D") == (403, 403)
    assert statuses() == (403, 403)
    assert provider.calls <= 2


def test_a_token_that_is_not_for_us_is_refused(provider: Provider, with_provider: Client) -> None:
    roles: Any = {"realm_access": {"roles": ["operator"]}}
    good = provider.token(**roles)
    stranger = Provider()
    stranger.add_key("k1")
    public = (
        provider.keys["k1"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    claims = jwt.decode(good.reveal(), options={"verify_signature": False})
    unsigned = jwt.encode(claims, "", algorithm="none", headers={"kid": "k1"})
    # A public key as the secret of HS256: PyJWT refuses to make it, so the test does it by hand.
    header, payload, _ = good.reveal().split(".")
    forged = ".".join((jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"k1"}').decode(), payload))
    mac = jwt.utils.base64url_encode(hashlib.sha256(public + forged.encode()).digest()).decode()
    wrong = {
        "audience": provider.token(aud="other", **roles),
        "no audience": provider.token(aud=None, **roles),
        "issuer": provider.token(iss="https://other", **roles),
        "expired": provider.token(exp=time.time() - 3600, **roles),
        "no end": provider.token(exp=None, **roles),
        "not yet": provider.token(nbf=time.time() + 3600, **roles),
        "no subject": provider.token(sub=None, **roles),
        "another key": stranger.token(**roles),
        "no signature": Secret(unsigned),
        "a cut signature": Secret(good.reveal()[:-10]),
        "symmetric": Secret(f"{forged}.{mac}"),
        "swapped header": Secret(f"{header}.{header}.{header}"),
        "no token": Secret("x.y.z"),
    }
    statuses = {name: with_provider.with_token(token)("GET", "/connectors").status for name, token in wrong.items()}
    assert statuses == dict.fromkeys(wrong, 401)
    assert with_provider.with_token(good)("GET", "/connectors").status == 200


def test_keys_are_fetched_when_they_are_needed_and_not_for_each_unknown_key() -> None:
    """With a clock of its own: no time passes unless the test says so."""
    provider = Provider()
    provider.add_key("k1")
    now = 0.0

    async def main(url: str) -> None:
        nonlocal now
        checker = TokenChecker(Jwks(url, "heliograph"), lambda: now)
        provider.is_down = True
        with pytest.raises(KeySetUnavailable):
            await checker.claims(provider.token())
        provider.is_down = False
        with pytest.raises(KeySetUnavailable):
            await checker.claims(provider.token())
        assert provider.calls == 1
        now = 20.0
        assert (await checker.claims(provider.token()) or {})["sub"] == "alice"
        provider.add_key("k2")
        for _ in range(3):
            assert await checker.claims(provider.token("k2")) is None
        assert provider.calls == 2
        now = 40.0
        assert await checker.claims(provider.token("k2")) is not None
        assert provider.calls == 3
        now = 1000.0
        provider.is_down = True
        assert await checker.claims(provider.token("k2")) is not None, "known keys stay in use"

    with _publishing(provider) as url:
        asyncio.run(main(url))


# --- the log ------------------------------------------------------------------------------------------------------


def test_the_log_names_who_changes_something_and_refused_logins(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "heliograph.rest")
    with serving(RestSettings(users=_file(tmp_path, "users", "alice=wonder"))) as client:
        assert client.as_user("alice", "wonder")("PUT", "/connectors/ab/pause").status == 202
        assert client.as_user("alice", "wonder")("GET", "/connectors").status == 200
        assert client.as_user("alice", "guess")("GET", "/connectors").status == 401
    assert [record.getMessage() for record in caplog.records if record.name == "heliograph.rest.gate"] == [
        "alice calls PUT /connectors/ab/pause",
        "a login to the REST API from 127.0.0.1 is refused: name, password or token is wrong",
    ]
    assert "guess" not in caplog.text


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True), ("", False), ("127.example", False)],
)
def test_a_loopback_address_is_known_by_its_number(host: str, is_loopback: bool) -> None:
    assert Listener(host, 1).is_loopback is is_loopback
