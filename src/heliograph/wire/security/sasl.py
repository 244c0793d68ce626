"""Logging in with SASL: the mechanism's messages go to the broker in SaslAuthenticate requests."""

import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.sasl.msk import AwsMskIamClient, SaslMechanismAwsMskIam
from kafka.net.sasl.oauth import AbstractTokenProvider, SaslMechanismOAuth
from kafka.net.sasl.plain import SaslMechanismPlain
from kafka.net.sasl.scram import SaslMechanismScram, ScramClient
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from heliograph.model.secret import Secret
from heliograph.model.security import PLAIN, AwsIamLogin, KerberosLogin, OAuthLogin, PasswordLogin, Sasl
from heliograph.wire.background import in_thread
from heliograph.wire.errors import BrokerError
from heliograph.wire.security.failures import NO_SASL, SecurityFailure
from heliograph.wire.security.oauth_tokens import access_token, forget_token

_UNSUPPORTED_MECHANISM = 33
_ILLEGAL_STATE = 34
_AUTHENTICATION_FAILED = 58
_MOST_STEPS = 20
_NO_CACHE = -1765328189 % (1 << 32)  # KRB5_FCC_NOFILE of MIT Kerberos, as GSSAPI reports it
_MSK_HOST = re.compile(r"\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")

T = TypeVar("T")

Send: TypeAlias = Callable[[Any, int], Awaitable[Any]]  # a request and its newest version -> its response


async def start_mechanism(sasl: Sasl, host: str) -> SaslMechanism:
    """Gets what is needed to log in: a token, a ticket. Raises SecurityFailure."""
    return await _step(lambda: _make(sasl, host), sasl)


async def authenticate(send: Send, sasl: Sasl, mechanism: SaslMechanism) -> float:
    """Logs in on a connection. Returns after how many seconds the broker wants that again, 0 for never. Raises
    SecurityFailure."""
    answer = await send(SaslHandshakeRequest(mechanism=sasl.mechanism), 1)
    if answer.error_code == _UNSUPPORTED_MECHANISM:
        enabled = ", ".join(answer.mechanisms) or "none"
        raise SecurityFailure(f"sasl.mechanism: the broker does not support {sasl.mechanism}, but: {enabled}")
    if answer.error_code == _ILLEGAL_STATE:
        raise SecurityFailure(f"security.protocol: {NO_SASL}")
    if answer.error_code:
        raise BrokerError(answer.error_code)
    lifetime = 0.0
    for _ in range(_MOST_STEPS):
        if mechanism.is_done():
            break
        message = await _step(mechanism.auth_bytes, sasl)
        answer = await send(SaslAuthenticateRequest(auth_bytes=message), 1)
        if answer.error_code:
            raise _refused(sasl, answer.error_code, answer.error_message)
        lifetime = (getattr(answer, "session_lifetime_ms", 0) or 0) / 1000
        received = bytes(answer.auth_bytes)
        if not (mechanism.is_done() and not received):  # the last answer of GSSAPI is empty
            await _step(partial(mechanism.receive, received), sasl)
    if not (mechanism.is_done() and mechanism.is_authenticated()):
        raise SecurityFailure(f"sasl.mechanism: the broker did not complete the login with {sasl.mechanism}")
    return lifetime


async def _step(function: Callable[[], T], sasl: Sasl) -> T:
    """Runs a step of a mechanism in a thread. Its errors may quote secrets: only their types are reported."""
    try:
        return await in_thread(function)
    except SecurityFailure:
        raise
    except ValueError as error:
        # SCRAM proves that the broker knows the password, too.
        text = f"the login with {sasl.mechanism} cannot be made ({type(error).__name__})"
        raise SecurityFailure(
            f"sasl.jaas.config: {text}: check user and password, and that this is the right cluster"
        ) from None
    except Exception as error:
        text = f"the login with {sasl.mechanism} failed on our side ({type(error).__name__})"
        raise SecurityFailure(f"sasl.jaas.config: {text}: check its options") from None


def _refused(sasl: Sasl, code: int, message: str | None) -> Exception:
    if code == _ILLEGAL_STATE:
        return SecurityFailure(f"security.protocol: {NO_SASL}")
    if code != _AUTHENTICATION_FAILED:
        return BrokerError(code, message)
    match sasl.login:
        case PasswordLogin(username=name):
            who, remedy = f"user {name}", "check user and password"
        case OAuthLogin() as login:
            forget_token(login)
            who, remedy = f"client {login.client_id}" if login.client_id else "the token", "check issuer and audience"
        case KerberosLogin(principal=name):
            who, remedy = name or "the Kerberos ticket", "check principal and sasl.kerberos.service.name"
        case AwsIamLogin():
            who, remedy = "the AWS identity", "check its policy and the region"
    said = f" ({message})" if message else ""
    return SecurityFailure(f"sasl.jaas.config: the broker refuses {who} with {sasl.mechanism}{said}: {remedy}")


def _make(sasl: Sasl, host: str) -> SaslMechanism:
    match sasl.login:
        case PasswordLogin() as login if sasl.mechanism == PLAIN:
            return SaslMechanismPlain(sasl_plain_username=login.username, sasl_plain_password=login.password.reveal())
        case PasswordLogin() as login:
            return _Scram(login, sasl.mechanism)
        case OAuthLogin() as login:
            return SaslMechanismOAuth(sasl_oauth_token_provider=_Token(access_token(login), dict(login.extensions)))
        case KerberosLogin() as login:
            return _kerberos(login, host)
        case AwsIamLogin() as login:
            return _aws(login, host)


class _Scram(SaslMechanismScram):  # type: ignore[misc]
    def __init__(self, login: PasswordLogin, mechanism: str) -> None:
        # A comma or an equals sign would end the name.
        name = login.username.replace("=", "=3D").replace(",", "=2C")
        super().__init__(
            sasl_plain_username=name, sasl_plain_password=login.password.reveal(), sasl_mechanism=mechanism
        )
        if login.is_token:
            self._scram_client = _TokenScramClient(name, login.password.reveal(), mechanism)


class _TokenScramClient(ScramClient):  # type: ignore[misc]
    """The broker looks for a delegation token instead of a user."""

    def first_message(self) -> bytes:
        extension = b",tokenauth=true"
        message: bytes = super().first_message() + extension
        self.auth_message += extension
        return message


class _Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, text: Secret, extensions: dict[str, str]) -> None:
        self._text = text
        self._extensions = extensions

    def token(self) -> str:
        return self._text.reveal()

    def extensions(self) -> dict[str, str]:
        return self._extensions


def _kerberos(login: KerberosLogin, host: str) -> SaslMechanism:
    try:
        import gssapi  # optional
    except (ImportError, OSError):
        text = "GSSAPI needs the package gssapi: install it with pip install 'heliograph[gssapi]'"
        raise SecurityFailure(f"sasl.mechanism: {text}") from None
    if login.keytab:
        _check_keytab(login.keytab)
    try:
        return _Kerberos(gssapi, login, host)
    except gssapi.exceptions.GSSError as error:
        who = f" of {login.principal}" if login.principal else ""
        # Without a key, Kerberos looks for a ticket, and reports that there is none.
        no_key = login.keytab and error.min_code == _NO_CACHE
        reason = "the keytab has no key of this principal" if no_key else _reason(error)
        text = f"there is no Kerberos ticket{who} for {login.service_name}/{host}: {reason}"
        remedy = f"check principal, KDC and klist -k {login.keytab}" if login.keytab else "run kinit, or set keyTab"
        raise SecurityFailure(f"sasl.jaas.config: {text}: {remedy}") from None


def _check_keytab(path: str) -> None:
    # Kerberos would use tickets that it still has, or report a missing one instead of the file.
    try:
        with open(path.removeprefix("FILE:"), "rb"):
            pass
    except OSError as error:
        text = f"the keytab {path} cannot be read: {error.strerror}: check keyTab and the file's permissions"
        raise SecurityFailure(f"sasl.jaas.config: {text}") from None


def _reason(error: Any) -> str:
    """The status of Kerberos. That of GSSAPI says less, and is used where there is no other."""
    statuses = error.get_all_statuses(error.min_code, False) if error.min_code else []
    return " ".join(" ".join(statuses or error.get_all_statuses(error.maj_code, True)).split())


class _Kerberos(SaslMechanismGSSAPI):  # type: ignore[misc]
    """kafka-python's mechanism with credentials of its own: several clusters may need several keytabs."""

    def __init__(self, gssapi: Any, login: KerberosLogin, host: str) -> None:
        self._is_done = self._is_authenticated = False
        self._error: type[Exception] = gssapi.exceptions.GSSError
        name = f"{login.service_name}@{host}"
        service = gssapi.Name(name, name_type=gssapi.NameType.hostbased_service)
        self.gssapi_name = service.canonicalize(gssapi.MechType.kerberos)
        credentials = None
        if login.principal or login.keytab:
            kind = gssapi.NameType.kerberos_principal
            client = gssapi.Name(login.principal, name_type=kind) if login.principal else None
            credentials = gssapi.Credentials(name=client, usage="initiate", store=_credential_store(login))
        self._client_ctx = gssapi.SecurityContext(name=self.gssapi_name, creds=credentials, usage="initiate")
        self._next_token = self._client_ctx.step(None)

    def receive(self, auth_bytes: bytes) -> None:
        try:
            if self._client_ctx.complete:
                # As in Java, the client asks to act as itself. kafka-python would name the broker's service.
                self.auth_id = str(self._client_ctx.initiator_name)
            super().receive(auth_bytes)
        except self._error as error:
            raise ValueError(_reason(error)) from None


def _credential_store(login: KerberosLogin) -> dict[str, str] | None:
    """Where tickets are kept: with a keytab in this process, for each keytab apart; else where kinit puts them."""
    if not login.keytab:
        return None
    return {"client_keytab": login.keytab, "ccache": f"MEMORY:{login.principal} {login.keytab}"}


def _aws(login: AwsIamLogin, host: str) -> SaslMechanism:
    try:
        from botocore.session import Session  # optional
    except ImportError:
        text = "AWS_MSK_IAM needs the package botocore: install it with pip install 'heliograph[msk]'"
        raise SecurityFailure(f"sasl.mechanism: {text}") from None
    return _Aws(Session(profile=login.profile or None), login, host)


class _Aws(SaslMechanismAwsMskIam):  # type: ignore[misc]
    """kafka-python's mechanism with the profile and role of the settings."""

    def __init__(self, session: Any, login: AwsIamLogin, host: str) -> None:
        super().__init__(security_protocol="SASL_SSL", host=host)
        self._session = session
        self._login = login
        self._client = self._sign_in()  # asks AWS, which takes longer than a broker waits

    def _build_client(self) -> AwsMskIamClient:
        return self._client

    def _sign_in(self) -> AwsMskIamClient:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            region, credentials = self._region(), self._session.get_credentials()
            if not region or credentials is None:
                what = "credentials" if region else "region"
                text = f"AWS' own settings have no {what}: set AWS_REGION and credentials, or awsProfileName"
                raise SecurityFailure(f"sasl.jaas.config: {text}")
            if self._login.role_arn:
                credentials = self._assume_role(self._login.region or region)
            frozen = credentials.get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            text = f"AWS gives no credentials: {error}: check awsProfileName, awsRoleArn and AWS' own settings"
            raise SecurityFailure(f"sasl.jaas.config: {text}") from None
        return AwsMskIamClient(self.host, frozen.access_key, frozen.secret_key, region, frozen.token)

    def _region(self) -> str:
        """That of the cluster, by the broker's name if that has one, as in Amazon's own login module."""
        if named := _MSK_HOST.search(self.host):
            return named[1]
        # Java reads AWS_REGION, which botocore does not.
        configured: str | None = os.environ.get("AWS_REGION") or self._session.get_config_variable("region")
        return self._login.region or configured or ""

    def _assume_role(self, region: str) -> Any:
        from botocore.credentials import Credentials

        sts = self._session.create_client("sts", region_name=region)
        name = self._login.session_name or "heliograph"
        given = sts.assume_role(RoleArn=self._login.role_arn, RoleSessionName=name)["Credentials"]
        return Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
