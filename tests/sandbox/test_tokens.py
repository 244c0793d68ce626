"""The token endpoint as a client sees it."""

import base64
import json
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError

import jwt
import pytest

from heliograph.sandbox import Authority, TokenServer, write_key_store
from heliograph.sandbox.certificates import LOOPBACK
from secured import fetch_token


@pytest.fixture
def server() -> Iterator[TokenServer]:
    server = TokenServer({"mirror": "s3cret"}, lifetime=60)
    yield server
    server.close()


def claims(server: TokenServer, token: str) -> dict[str, object]:
    key = jwt.PyJWKSet.from_json(server.key_set())[jwt.get_unverified_header(token)["kid"]]
    decoded: dict[str, object] = jwt.decode(token, key, ["RS256"], audience="kafka", issuer=server.issuer)
    return decoded


def test_a_client_with_the_right_secret_gets_a_token_for_the_lifetime(server: TokenServer) -> None:
    found = claims(server, fetch_token(server.url, "mirror", "s3cret"))
    assert found["sub"] == "mirror"
    assert int(str(found["exp"])) - int(str(found["iat"])) == 60


def test_credentials_may_be_in_the_header(server: TokenServer) -> None:
    header = "Basic " + base64.b64encode(b"mirror:s3cret").decode()
    request = urllib.request.Request(server.url, b"grant_type=client_credentials", {"Authorization": header})
    with urllib.request.urlopen(request, timeout=20) as answer:
        content = json.load(answer)
    assert claims(server, content["access_token"])["sub"] == "mirror"
    assert (content["token_type"], content["expires_in"]) == ("Bearer", 60)


@pytest.mark.parametrize(("client", "secret"), [("mirror", "wrong"), ("nobody", "s3cret"), ("", "")])
def test_others_are_refused(server: TokenServer, client: str, secret: str) -> None:
    with pytest.raises(HTTPError) as refusal:
        fetch_token(server.url, client, secret)
    assert refusal.value.code == 401
    assert json.load(refusal.value) == {"error": "invalid_client"}


def test_the_endpoint_fails_as_it_is_asked_to(server: TokenServer) -> None:
    server.failure = 503
    with pytest.raises(HTTPError, match="503"):
        fetch_token(server.url, "mirror", "s3cret")
    server.failure = None
    assert fetch_token(server.url, "mirror", "s3cret")
    server.close()
    with pytest.raises(URLError, match="refused"):
        fetch_token(server.url, "mirror", "s3cret")


def test_the_endpoint_can_have_tls(tmp_path: Path) -> None:
    authority = Authority()
    write_key_store(tmp_path / "server.pem", authority.issue("tokens", hosts=LOOPBACK))
    server = TokenServer({"mirror": "s3cret"}, pem=tmp_path / "server.pem")
    form = b"grant_type=client_credentials&client_id=mirror&client_secret=s3cret"
    with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(server.url, form, timeout=20)
    context = ssl.create_default_context(cadata=authority.pem)
    with urllib.request.urlopen(server.url, form, timeout=20, context=context) as answer:
        assert claims(server, json.load(answer)["access_token"])["iss"] == server.url.removesuffix("/token")
    server.close()
