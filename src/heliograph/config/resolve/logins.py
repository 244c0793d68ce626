"""How a client logs in, from its SASL mechanism, its login module and its settings.

A message continues "sasl.jaas.config ...", or names another setting at its beginning.
"""

from collections.abc import Mapping
from typing import Protocol, TypeVar

from heliograph.config.declare import supported
from heliograph.config.declare.kinds import HOST_NAME_CHECK
from heliograph.config.declare.setting import Setting
from heliograph.config.read.jaas import LoginModule
from heliograph.model import security
from heliograph.model.secret import Secret

T = TypeVar("T")
_PLAIN, _SCRAM, _OAUTH = "PlainLoginModule", "ScramLoginModule", "OAuthBearerLoginModule"
_KERBEROS, _IAM = "Krb5LoginModule", "IAMLoginModule"
MODULES = (_PLAIN, _SCRAM, _OAUTH, _KERBEROS, _IAM)
_KAFKA = "org.apache.kafka.common.security"
EXAMPLES = {
    security.PLAIN: f'{_KAFKA}.plain.{_PLAIN} required username="..." password="...";',
    security.SCRAM_SHA_256: f'{_KAFKA}.scram.{_SCRAM} required username="..." password="...";',
    security.SCRAM_SHA_512: f'{_KAFKA}.scram.{_SCRAM} required username="..." password="...";',
    security.OAUTHBEARER: f'{_KAFKA}.oauthbearer.{_OAUTH} required clientId="..." clientSecret="...";',
    security.GSSAPI: f'com.sun.security.auth.module.{_KERBEROS} required useKeyTab=true keyTab="..." principal="...";',
    security.AWS_MSK_IAM: f"software.amazon.msk.auth.iam.{_IAM} required;",
}
_MECHANISMS = {
    _PLAIN: (security.PLAIN, security.SCRAM_SHA_256, security.SCRAM_SHA_512),
    _SCRAM: (security.SCRAM_SHA_512, security.SCRAM_SHA_256, security.PLAIN),
    _OAUTH: (security.OAUTHBEARER,),
    _KERBEROS: (security.GSSAPI,),
    _IAM: (security.AWS_MSK_IAM,),
}
_AMAZON = "IAMOAuthBearerLoginCallbackHandler"
_HANDLERS = ("OAuthBearerLoginCallbackHandler", "JaasClientOauthLoginCallbackHandler", _AMAZON)
CALLBACK_HANDLERS = (*_HANDLERS, "IAMClientCallbackHandler", "OAuthBearerSaslClientCallbackHandler")
_RETRIEVERS = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
# Options of Strimzi for other grants, which this version does not have.
_OTHER_GRANTS = ("oauth.refresh.token", "oauth.client.assertion", "oauth.password.grant", "oauth.username")
_FILE = "file:"


class ClientSettings(Protocol):
    """The settings of one client."""

    def get(self, setting: Setting[T]) -> T: ...

    def if_set(self, setting: Setting[T]) -> T | None:
        """None if the client has no value for it."""


def login_of(mechanism: str, module: LoginModule | None, read: ClientSettings) -> security.Login:
    """`module` is None if there is no `sasl.jaas.config`. Raises `ValueError`."""
    if module is None:
        endpoint = read.if_set(supported.OAUTH_TOKEN_ENDPOINT)
        if mechanism == security.OAUTHBEARER and endpoint:
            return _oauth_login(LoginModule(_OAUTH, {}), read)
        raise ValueError(f"is missing: for sasl.mechanism = {_named(mechanism, read)} write {EXAMPLES[mechanism]}")
    if module.name not in MODULES:
        raise ValueError(f"names a login module that is not supported: supported are {', '.join(MODULES)}")
    if mechanism not in _MECHANISMS[module.name]:
        fitting = _MECHANISMS[module.name][0]
        raise ValueError(
            f"has {module.name}, but sasl.mechanism is {_named(mechanism, read)}: write sasl.mechanism = {fitting}, "
            "or another login module"
        )
    match module.name:
        case "OAuthBearerLoginModule":
            return _oauth_login(module, read)
        case "Krb5LoginModule":
            return _kerberos_login(module, read)
        case "IAMLoginModule":
            return _iam_login(module)
        case _:
            return _password_login(module)


def _named(mechanism: str, read: ClientSettings) -> str:
    return mechanism if read.if_set(supported.SASL_MECHANISM) else f"{mechanism} (the default)"


def _password_login(module: LoginModule) -> security.PasswordLogin:
    for option in ("username", "password"):
        if option not in module.options:
            raise ValueError(f"has no {option}: write {option}=\"...\" after 'required'")
    is_token = module.text("tokenauth").lower() == "true"
    return security.PasswordLogin(module.text("username"), module.options["password"], is_token)


def _kerberos_login(module: LoginModule, read: ClientSettings) -> security.KerberosLogin:
    service = read.if_set(supported.SASL_KERBEROS_SERVICE_NAME) or module.text("serviceName")
    keytab = module.text("keyTab") or module.text("useKeytab")
    if keytab and not module.text("principal"):
        raise ValueError('has a keyTab but no principal: write principal="..." after it')
    return security.KerberosLogin(service or security.KerberosLogin().service_name, module.text("principal"), keytab)


def _iam_login(module: LoginModule) -> security.AwsIamLogin:
    for option in ("awsRoleAccessKeyId", "awsRoleSecretAccessKey", "awsRoleSessionToken", "awsRoleExternalId"):
        if option in module.options:
            raise ValueError(
                f"has {option}, which is not supported: write awsProfileName, or set AWS' environment variables"
            )
    return security.AwsIamLogin(
        module.text("awsStsRegion"),
        module.text("awsProfileName"),
        module.text("awsRoleArn"),
        module.text("awsRoleSessionName"),
    )


def _oauth_login(module: LoginModule, read: ClientSettings) -> security.Login:
    handler = (read.if_set(supported.SASL_LOGIN_CALLBACK_HANDLER) or "").rpartition(".")[2]
    if handler == _AMAZON:
        return _iam_login(module)
    if handler and handler not in _HANDLERS:
        raise ValueError(
            f"sasl.login.callback.handler.class: {handler} is not supported: supported are {', '.join(_HANDLERS)}"
        )
    retriever = read.get(supported.OAUTH_RETRIEVER).rpartition(".")[2]
    if retriever not in _RETRIEVERS:
        raise ValueError(
            f"sasl.oauthbearer.jwt.retriever.class: {retriever} is not supported: supported are "
            f"{', '.join(_RETRIEVERS)}"
        )
    if any(option.startswith("oauth.") for option in module.options):
        return _strimzi_login(module, read)
    return _kafka_login(module, read)


def _kafka_login(module: LoginModule, read: ClientSettings) -> security.OAuthLogin:
    endpoint = read.if_set(supported.OAUTH_TOKEN_ENDPOINT) or ""
    if not endpoint:
        if any(option.startswith("unsecured") for option in module.options):
            raise ValueError("asks for an unsecured token, which is not supported: set a token endpoint")
        raise ValueError(
            "needs sasl.oauthbearer.token.endpoint.url: write https://... or file:///... of a file with a token"
        )
    timeouts = (
        _seconds(read.if_set(supported.SASL_LOGIN_CONNECT_TIMEOUT)),
        _seconds(read.if_set(supported.SASL_LOGIN_READ_TIMEOUT)),
    )
    prefix = "extension_"
    extensions = _extensions(module, prefix)
    tls = _endpoint_tls(module.options, "ssl.")
    refresh_at = read.get(supported.SASL_LOGIN_REFRESH_WINDOW)
    if endpoint.startswith(_FILE):
        return security.OAuthLogin(token_location=_path(endpoint), extensions=extensions, refresh_at=refresh_at)
    client_id = read.if_set(supported.OAUTH_CLIENT_ID) or module.text("clientId")
    client_secret = read.if_set(supported.OAUTH_CLIENT_SECRET) or module.options.get("clientSecret")
    if not client_id or client_secret is None:
        raise ValueError(
            "has no clientId and clientSecret: write both, or sasl.oauthbearer.client.credentials.client.id and "
            "sasl.oauthbearer.client.credentials.client.secret"
        )
    return security.OAuthLogin(
        endpoint,
        client_id,
        client_secret,
        read.if_set(supported.OAUTH_SCOPE) or module.text("scope"),
        url_encode_header=read.get(supported.OAUTH_HEADER_URLENCODE),
        tls=tls,
        extensions=extensions,
        connect_timeout=timeouts[0],
        read_timeout=timeouts[1],
        refresh_at=refresh_at,
    )


def _strimzi_login(module: LoginModule, read: ClientSettings) -> security.OAuthLogin:
    for option in module.options:
        if option.startswith(_OTHER_GRANTS):
            raise ValueError(
                f"has {option}, which is not supported: write oauth.client.id and oauth.client.secret, "
                "oauth.access.token, or oauth.access.token.location"
            )
    token = module.options.get("oauth.access.token")
    location = module.text("oauth.access.token.location")
    endpoint = module.text("oauth.token.endpoint.uri") or read.if_set(supported.OAUTH_TOKEN_ENDPOINT) or ""
    client_id, client_secret = module.text("oauth.client.id"), module.options.get("oauth.client.secret")
    if token is None and not location and (not endpoint or not client_id or client_secret is None):
        raise ValueError(
            "needs oauth.token.endpoint.uri, oauth.client.id and oauth.client.secret, or oauth.access.token, or "
            "oauth.access.token.location"
        )
    default = security.OAuthLogin()
    return security.OAuthLogin(
        endpoint,
        client_id,
        client_secret,
        module.text("oauth.scope"),
        module.text("oauth.audience"),
        token,
        location,
        tls=_endpoint_tls(module.options, "oauth.ssl."),
        extensions=_extensions(module, "oauth.sasl.extension."),
        connect_timeout=_number(module, "oauth.connect.timeout.seconds", default.connect_timeout),
        read_timeout=_number(module, "oauth.read.timeout.seconds", default.read_timeout),
        refresh_at=read.get(supported.SASL_LOGIN_REFRESH_WINDOW),
    )


def _extensions(module: LoginModule, prefix: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (option.removeprefix(prefix), value.reveal())
        for option, value in sorted(module.options.items())
        if option.startswith(prefix)
    )


def _endpoint_tls(options: Mapping[str, Secret], prefix: str) -> security.Tls:
    """TLS of the token endpoint: options of the login module, not the settings for brokers."""

    def text(name: str, default: str = "") -> str:
        return options[prefix + name].reveal().strip() if prefix + name in options else default

    kind = supported.SSL_TRUSTSTORE_TYPE.kind
    try:
        trust_type = kind.parse(text("truststore.type", supported.SSL_TRUSTSTORE_TYPE.default or ""))
        key_type = kind.parse(text("keystore.type", supported.SSL_KEYSTORE_TYPE.default or ""))
        verify_host = HOST_NAME_CHECK.parse(text("endpoint.identification.algorithm", "https"))
    except ValueError as error:
        raise ValueError(f"has a value of {prefix}* that {error}") from None
    certificates = options.get(f"{prefix}truststore.certificates")
    trust = security.TrustStore(
        security.PEM if certificates is not None else trust_type,
        text("truststore.location"),
        options.get(f"{prefix}truststore.password"),
        certificates,
    )
    key = None
    if text("keystore.location"):
        password = options.get(f"{prefix}keystore.password")
        key_password = options.get(f"{prefix}key.password")
        key = security.KeyStore(key_type, text("keystore.location"), password, key_password)
    return security.Tls(trust, key, verify_host)


def _path(url: str) -> str:
    """`file:///a`, `file://localhost/a` and `file:/a` are the file /a."""
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path)


def _seconds(milliseconds: int | None) -> float:
    return milliseconds / 1000 if milliseconds else security.OAuthLogin().connect_timeout


def _number(module: LoginModule, option: str, default: float) -> float:
    try:
        return float(module.text(option, str(default)))
    except ValueError:
        raise ValueError(f"has a value of {option} that is not a number") from None
