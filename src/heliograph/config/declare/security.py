"""Declarations: how a cluster is spoken to safely. MirrorMaker 2 calls these, with `bootstrap.servers`, the client
set."""

from __future__ import annotations

from heliograph.config.declare import locations
from heliograph.config.declare.kinds import Bool, Choice, Kind, Names, Text, Whole
from heliograph.config.declare.setting import Setting, SettingGroup

_CLASS = Text("class")
_SECRET = Text("secret")
_NUMBER = Text("number")

SECURITY_PROTOCOL = Setting(
    "security.protocol",
    Choice(("PLAINTEXT",), "is not possible: TLS and SASL are not supported by this version yet, only PLAINTEXT"),
    "PLAINTEXT",
    "How to talk to brokers. This version knows PLAINTEXT only and refuses to start with anything else.",
    locations.SECURITY,
    supported=True,
)


def _security(name: str, kind: Kind[object], default: str | None, about: str) -> Setting[object]:
    return Setting(name, kind, default, about, locations.SECURITY)


_SSL = (
    _security("ssl.protocol", Text(), "TLSv1.3", "TLS version to begin with."),
    _security("ssl.provider", Text(), None, "Java security provider."),
    _security("ssl.cipher.suites", Names(), "", "Cipher suites that may be used; empty for the usual ones."),
    _security("ssl.enabled.protocols", Names(), "TLSv1.2, TLSv1.3", "TLS versions that may be used."),
    _security("ssl.keystore.type", Text(), "JKS", "Format of the key store: JKS, PKCS12 or PEM."),
    _security("ssl.keystore.location", Text(), None, "File with the client's own key."),
    _security("ssl.keystore.password", _SECRET, None, "Password of that file."),
    _security("ssl.key.password", _SECRET, None, "Password of the key in it."),
    _security("ssl.keystore.key", _SECRET, None, "The key itself, as PEM text."),
    _security("ssl.keystore.certificate.chain", _SECRET, None, "The client's certificates, as PEM text."),
    _security("ssl.truststore.certificates", _SECRET, None, "Certificates to trust, as PEM text."),
    _security("ssl.truststore.type", Text(), "JKS", "Format of the trust store."),
    _security("ssl.truststore.location", Text(), None, "File with the certificates to trust."),
    _security("ssl.truststore.password", _SECRET, None, "Password of that file."),
    _security("ssl.keymanager.algorithm", Text(), "SunX509", "Java algorithm of the key manager."),
    _security("ssl.trustmanager.algorithm", Text(), "PKIX", "Java algorithm of the trust manager."),
    _security(
        "ssl.endpoint.identification.algorithm", Text(), "https", "How host names are checked; empty for not at all."
    ),
    _security("ssl.secure.random.implementation", Text(), None, "Java source of random numbers."),
    _security("ssl.engine.factory.class", _CLASS, None, "Class that makes TLS engines."),
)
_SASL = (
    _security(
        "sasl.mechanism", Text(), "GSSAPI", "How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER."
    ),
    _security("sasl.jaas.config", _SECRET, None, "Login module and its options, in Java's JAAS form."),
    _security(
        "sasl.client.callback.handler.class", _CLASS, None, "Class that answers the client's questions at login."
    ),
    _security("sasl.login.callback.handler.class", _CLASS, None, "Class that answers the login module's questions."),
    _security("sasl.login.class", _CLASS, None, "Class that does the login."),
    _security("sasl.kerberos.service.name", Text(), None, "Kerberos name of the brokers."),
    _security("sasl.kerberos.kinit.cmd", Text(), "/usr/bin/kinit", "Command that renews Kerberos tickets."),
    _security(
        "sasl.kerberos.ticket.renew.window.factor", _NUMBER, "0.8", "After which part of its life a ticket is renewed."
    ),
    _security("sasl.kerberos.ticket.renew.jitter", _NUMBER, "0.05", "How much chance there is in that."),
    _security("sasl.kerberos.min.time.before.relogin", Whole(), "60000", "Milliseconds between two renewals at least."),
    _security("sasl.login.refresh.window.factor", _NUMBER, "0.8", "After which part of its life a token is renewed."),
    _security("sasl.login.refresh.window.jitter", _NUMBER, "0.05", "How much chance there is in that."),
    _security("sasl.login.refresh.min.period.seconds", Whole(0, 900), "60", "Seconds between two renewals at least."),
    _security(
        "sasl.login.refresh.buffer.seconds", Whole(0, 3600), "300", "Seconds left on a token when it is renewed."
    ),
    _security("sasl.login.connect.timeout.ms", Whole(), None, "How long connecting to the login service may take."),
    _security("sasl.login.read.timeout.ms", Whole(), None, "How long its answer may take."),
    _security("sasl.login.retry.backoff.ms", Whole(), "100", "Pause before the login service is asked again."),
    _security("sasl.login.retry.backoff.max.ms", Whole(), "10000", "The longest such pause."),
    _security("sasl.oauthbearer.scope.claim.name", Text(), "scope", "Claim that holds the scope."),
    _security("sasl.oauthbearer.sub.claim.name", Text(), "sub", "Claim that holds the user."),
    _security("sasl.oauthbearer.token.endpoint.url", Text(), None, "Where tokens come from."),
    _security(
        "sasl.oauthbearer.jwks.endpoint.url", Text(), None, "Where the keys come from that tokens are checked with."
    ),
    _security("sasl.oauthbearer.jwks.endpoint.refresh.ms", Whole(), "3600000", "How often those keys are read again."),
    _security(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Whole(), "100", "Pause before they are asked for again."
    ),
    _security("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Whole(), "10000", "The longest such pause."),
    _security(
        "sasl.oauthbearer.clock.skew.seconds", Whole(), "30", "How far clocks may differ when a token is checked."
    ),
    _security("sasl.oauthbearer.expected.audience", Names(), "", "Audiences a token may be for; empty for any."),
    _security("sasl.oauthbearer.expected.issuer", Text(), None, "Who must have issued a token."),
    _security(
        "sasl.oauthbearer.header.urlencode", Bool(), "false", "Whether the client's id and secret are URL-encoded."
    ),
    _security("sasl.oauthbearer.scope", Text(), None, "Scope to ask for."),
    _security("sasl.oauthbearer.client.credentials.client.id", Text(), None, "Client id to get tokens with."),
    _security("sasl.oauthbearer.client.credentials.client.secret", _SECRET, None, "Secret that belongs to it."),
    _security(
        "sasl.oauthbearer.jwt.retriever.class",
        _CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "Class that fetches tokens.",
    ),
    _security(
        "sasl.oauthbearer.jwt.validator.class",
        _CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "Class that checks tokens.",
    ),
    _security("sasl.oauthbearer.assertion.algorithm", Text(), "RS256", "How an assertion is signed."),
    _security("sasl.oauthbearer.assertion.file", Text(), None, "File with a finished assertion."),
    _security("sasl.oauthbearer.assertion.template.file", Text(), None, "File with headers and claims for assertions."),
    _security("sasl.oauthbearer.assertion.private.key.file", Text(), None, "File with the key that signs assertions."),
    _security("sasl.oauthbearer.assertion.private.key.passphrase", _SECRET, None, "Password of that key."),
    _security("sasl.oauthbearer.assertion.claim.aud", Text(), None, "Audience written into assertions."),
    _security("sasl.oauthbearer.assertion.claim.iss", Text(), None, "Issuer written into assertions."),
    _security("sasl.oauthbearer.assertion.claim.sub", Text(), None, "Subject written into assertions."),
    _security(
        "sasl.oauthbearer.assertion.claim.jti.include", Bool(), "false", "Whether each assertion gets an id of its own."
    ),
    _security(
        "sasl.oauthbearer.assertion.claim.exp.seconds", Whole(0, 86400), "300", "How long an assertion is good for."
    ),
    _security(
        "sasl.oauthbearer.assertion.claim.nbf.seconds", Whole(0, 3600), "60", "How far back it begins to be good."
    ),
)

GROUPS = (
    SettingGroup("Security protocol", "Checked wherever it stands.", (SECURITY_PROTOCOL,)),
    SettingGroup("TLS", "Names as in Kafka's clients.", _SSL),
    SettingGroup("SASL", "Names as in Kafka's clients.", _SASL),
)
