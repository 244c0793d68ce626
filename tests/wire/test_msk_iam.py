"""The login to Amazon MSK: the one message that is sent, which proves the secret key without containing it."""

import asyncio
import hashlib
import hmac
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from heliograph.model.security import AWS_MSK_IAM, AwsIamLogin, Sasl
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.security.sasl import authenticate, start_mechanism

BROKER = "b-1.orders.abc123.c2.kafka.eu-west-1.amazonaws.com"
DEFAULTS = AwsIamLogin()
KEY, SECRET_KEY, SESSION_TOKEN = "AKIAEXAMPLE", "the/secret+key", "a session's token"


@pytest.fixture(autouse=True)
def _aws_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials for these tests; nothing of the machine's own is used."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)


def _first_message(login: AwsIamLogin = DEFAULTS, host: str = BROKER, error: int = 0) -> str:
    """What is sent to a broker that answers with this error code."""
    sent: list[bytes] = []

    async def send(request: Any, _newest: int) -> Any:
        if not hasattr(request, "auth_bytes"):
            assert request.mechanism == AWS_MSK_IAM
            return SaslHandshakeResponse(error_code=0, mechanisms=[AWS_MSK_IAM])
        sent.append(request.auth_bytes)
        said = "Access denied" if error else None
        return SaslAuthenticateResponse(
            error_code=error, error_message=said, auth_bytes=b'{"version":"2020_10_22"}', session_lifetime_ms=900_000
        )

    async def main() -> float:
        sasl = Sasl(AWS_MSK_IAM, login)
        return await authenticate(send, sasl, await start_mechanism(sasl, host))

    assert asyncio.run(main()) == 900
    (message,) = sent
    return message.decode()


def _signature(message: dict[str, str], secret_key: str) -> str:
    """AWS' signature, version 4, of a request to connect, computed from the message's other fields."""
    _, *scope = message["x-amz-credential"].split("/")
    names = {
        "Action": "action",
        "X-Amz-Algorithm": "x-amz-algorithm",
        "X-Amz-Credential": "x-amz-credential",
        "X-Amz-Date": "x-amz-date",
        "X-Amz-Expires": "x-amz-expires",
        "X-Amz-Security-Token": "x-amz-security-token",
        "X-Amz-SignedHeaders": "x-amz-signedheaders",
    }
    query = "&".join(f"{name}={quote(message[field], safe='')}" for name, field in names.items() if field in message)
    request = ["GET", "/", query, f"host:{message['host']}", "", "host", hashlib.sha256(b"").hexdigest()]
    digest = hashlib.sha256("\n".join(request).encode()).hexdigest()
    key = f"AWS4{secret_key}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join(["AWS4-HMAC-SHA256", message["x-amz-date"], "/".join(scope), digest])
    return hmac.digest(key, text.encode(), "sha256").hex()


def test_the_message_is_signed_and_has_no_secret_key() -> None:
    text = _first_message()
    message = json.loads(text)
    day = message["x-amz-date"][:8]
    assert message | {"x-amz-date": "", "x-amz-signature": "", "user-agent": ""} == {
        "version": "2020_10_22",
        "host": BROKER,
        "user-agent": "",
        "action": "kafka-cluster:Connect",
        "x-amz-algorithm": "AWS4-HMAC-SHA256",
        "x-amz-credential": f"{KEY}/{day}/eu-west-1/kafka-cluster/aws4_request",
        "x-amz-date": "",
        "x-amz-signedheaders": "host",
        "x-amz-expires": "900",
        "x-amz-signature": "",
    }
    assert message["x-amz-signature"] == _signature(message, SECRET_KEY)
    assert message["x-amz-signature"] != _signature(message, "another key")
    assert SECRET_KEY not in text


def test_a_session_token_is_sent_and_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION_TOKEN)
    message = json.loads(_first_message())
    assert message["x-amz-security-token"] == SESSION_TOKEN
    assert message["x-amz-signature"] == _signature(message, SECRET_KEY)


def test_a_profile_has_credentials_and_region(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile mirror]\nregion = ap-south-1\n")
    (tmp_path / "credentials").write_text("[mirror]\naws_access_key_id = OTHER\naws_secret_access_key = other key\n")
    message = json.loads(_first_message(AwsIamLogin(profile="mirror"), host="10.0.0.7"))
    key, _, region, _ = message["x-amz-credential"].split("/", 3)
    assert (key, region) == ("OTHER", "ap-south-1")
    assert message["x-amz-signature"] == _signature(message, "other key")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (BROKER, "eu-west-1"),
        ("boot-x1.c3.kafka-serverless.us-east-2.amazonaws.com", "us-east-2"),
        ("b-1.orders.abc123.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example.org", "eu-central-1"),
    ],
)
def test_the_region_is_that_of_the_brokers_name_if_it_has_one(
    monkeypatch: pytest.MonkeyPatch, host: str, region: str
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert json.loads(_first_message(host=host))["x-amz-credential"].split("/")[2] == region


def test_what_is_said_about_missing_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SecurityFailure, match=r"AWS' own settings have no region: set AWS_REGION and credentials"):
        _first_message(host="10.0.0.7")
    with pytest.raises(SecurityFailure, match=r"The config profile \(missing\) could not be found: check awsProfile"):
        _first_message(AwsIamLogin(profile="missing"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(SecurityFailure, match=r"AWS' own settings have no credentials: set AWS_REGION and cred"):
        _first_message()


def test_a_broker_that_refuses_the_identity() -> None:
    with pytest.raises(SecurityFailure) as failure:
        _first_message(error=58)
    assert str(failure.value) == (
        "sasl.jaas.config: the broker refuses the AWS identity with AWS_MSK_IAM (Access denied): check its policy and "
        "the region"
    )


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(SecurityFailure) as failure:
        _first_message()
    assert str(failure.value) == (
        "sasl.mechanism: AWS_MSK_IAM needs the package botocore: install it with pip install 'heliograph[msk]'"
    )
