"""The settings that have an effect. `settings.toml` has a sentence about each, for the reference page.

The defaults are the model's where it has them, else those of MirrorMaker 2: for the producer those that Connect gives
its data producer.
"""

from collections.abc import Iterable
from typing import TypeVar

from heliograph.config.declare import kinds, locations, plugins
from heliograph.config.declare.kinds import (
    BOOL,
    INT_MAX,
    NAMES,
    PATTERNS,
    SECRET,
    TEXT,
    Kind,
    choice,
    decimal,
    subset,
    whole,
)
from heliograph.config.declare.setting import Setting
from heliograph.model import connecting, flow, rest_settings, security
from heliograph.model.compression import COMPRESSION_TYPES
from heliograph.model.membership import MembershipSettings

T = TypeVar("T")

TRANSLATE, PRESERVE = "translate", "preserve"
AUTO, ON, OFF = "auto", "on", "off"
RESTART, NONE = "restart", "none"
ALL_ERRORS = "all"
_MODEL = flow.Flow(flow.Cluster("A", ()), flow.Cluster("B", ()))
_FACTOR = kinds.REPLICATION_FACTOR
_SIZE = whole(0, INT_MAX)
_BUFFER = whole(-1, INT_MAX, but_not=0)
_MEMBERSHIP = MembershipSettings("")
_CONNECTING = _MODEL.source.connecting
_PARTS = (flow.SOURCE, flow.CHECKPOINT, flow.HEARTBEAT)
_OAUTH = security.OAuthLogin()
_STORE_TYPE = choice(security.JKS, security.PKCS12, security.PEM)
_POLICY = choice(flow.FAIL, flow.CONTINUE)

SUPPORTED: dict[str, Setting[object]] = {}


def _setting(
    name: str,
    kind: Kind[T],
    default: str | bool | int | float | tuple[str, ...] | None = None,
    where: locations.LocationSet = locations.FLOW,
    old_name: str = "",
) -> Setting[T]:
    """`default` is a value of the model, or a text as in a file."""
    match default:
        case bool():
            default = "true" if default else "false"
        case tuple():
            default = ", ".join(default)
        case int():
            default = str(default)
        case float():
            default = f"{default:.10g}"
    setting = Setting(name, kind, default, where, (old_name,) if old_name else ())
    SUPPORTED[name] = setting
    return setting


def _security(name: str, kind: Kind[T], default: str | bool | float | tuple[str, ...] | None = None) -> Setting[T]:
    return _setting(name, kind, default, locations.SECURITY)


def _class(name: str, *builtin: str) -> Setting[str | type[object]]:
    """The first of the built-in classes is the default."""
    return _setting(name, plugins.plugin(*builtin), f"{plugins.MIRROR_PACKAGE}.{builtin[0]}")


# The deployment.
CLUSTERS = _setting("clusters", kinds.ALIASES, None, locations.TOP)
BOOTSTRAP_SERVERS = _setting("bootstrap.servers", kinds.ADDRESSES, None, locations.CLUSTER)
ALIAS = _setting("alias", kinds.ALIAS, None, locations.ALIAS)
CONFIG_PROVIDERS = _setting("config.providers", NAMES, "", locations.PROVIDERS)
CONFIG_PROVIDER_OPTIONS = _setting("config.providers.*", TEXT, None, locations.TOP)
SECRETS_DIR = _setting("heliograph.secrets.dir", TEXT, "", locations.TOP)
SECRETS_REFRESH = _setting("heliograph.secrets.refresh.seconds", decimal(0, 86400), 30, locations.TOP)
MEMBERSHIP = _setting("heliograph.membership", choice(ON, OFF), OFF, locations.TOP)
SPARK_WARM = _setting("heliograph.spark.warm", BOOL, False, locations.TOP)
SPARK_SECURE = _setting("heliograph.spark.secure", kinds.AUTO_OR_BOOL, AUTO, locations.TOP)
CONFIG_ACTION_RELOAD = _setting("config.action.reload", choice(RESTART, NONE), RESTART)

# What a flow copies.
ENABLED = _setting("enabled", BOOL, False)
TOPICS = _setting("topics", PATTERNS, flow.DEFAULT_TOPICS.include)
TOPICS_EXCLUDE = _setting("topics.exclude", PATTERNS, flow.DEFAULT_TOPICS.exclude, old_name="topics.blacklist")
HEARTBEATS_REPLICATION_ENABLED = _setting("heartbeats.replication.enabled", BOOL, _MODEL.heartbeats_replication)
REPLICATION_POLICY_CLASS = _class("replication.policy.class", *plugins.POLICIES)
REPLICATION_POLICY_SEPARATOR = _setting("replication.policy.separator", kinds.SEPARATOR, ".")
INTERNAL_TOPIC_SEPARATOR_ENABLED = _setting("replication.policy.internal.topic.separator.enabled", BOOL, True)
REPLICATION_FACTOR = _setting("replication.factor", _FACTOR, _MODEL.replication_factor)
TASKS_MAX = _setting("tasks.max", whole(1, INT_MAX), _MODEL.tasks_max)
REFRESH_TOPICS_ENABLED = _setting("refresh.topics.enabled", BOOL, True)
REFRESH_TOPICS_INTERVAL = _setting("refresh.topics.interval.seconds", whole(), _MODEL.refresh_topics_every)
CONFIG_PROPERTIES_EXCLUDE = _setting(
    "config.properties.exclude",
    PATTERNS,
    flow.DEFAULT_CONFIG_PROPERTIES_EXCLUDE.include,
    old_name="config.properties.blacklist",
)

TRANSFORMS = _setting("transforms", NAMES, "")

# Heliograph's own.
PARTS = _setting("heliograph.parts", subset(*_PARTS), _PARTS)
PARTITIONS = _setting("heliograph.partitions", kinds.PARTITIONS, "source")
OFFSETS = _setting("heliograph.offsets", choice(TRANSLATE, PRESERVE), TRANSLATE)
JOIN = _setting("heliograph.join", choice(AUTO, OFF), AUTO)
COMPILED_CODE = _setting("heliograph.compiled.code", choice(AUTO, OFF), AUTO)
PRESERVE_TOPICS = _setting("heliograph.preserve.topics", PATTERNS, ".*")
PRESERVE_MAX_FILL = _setting("heliograph.preserve.max.fill", whole(0, 2**62), _MODEL.kept_offsets.most_filler)
PRESERVE_MAX_GAP = _setting("heliograph.preserve.max.gap", whole(0, INT_MAX), _MODEL.kept_offsets.most_gap)
TOPICS_PAUSED = _setting("heliograph.topics.paused", NAMES, "")
BUFFER_MEMORY = _setting("heliograph.buffer.memory", whole(flow.MIB, 2**40), _MODEL.buffer_memory)
LEASE_SECONDS = _setting("heliograph.lease.seconds", decimal(1, 600), _MODEL.lease_seconds)
MAX_BYTES_PER_SECOND = _setting("heliograph.max.bytes.per.second", whole(0, 2**50), _MODEL.max_bytes_per_second)
RAISE_MIRROR_LIMITS = _setting("heliograph.raise.mirror.limits", BOOL, _MODEL.may_raise_limits)
MM2_CONNECTOR = _setting("heliograph.mm2.connector", TEXT, _MODEL.connect_offsets.connector)
MM2_OFFSETS_TOPIC = _setting("heliograph.mm2.offsets.topic", TEXT, _MODEL.connect_offsets.topic)
MM2_GROUP = _setting("heliograph.mm2.group", TEXT, _MODEL.connect_offsets.group)
MM2_STATUS_TOPIC = _setting("heliograph.mm2.status.topic", TEXT, _MODEL.connect_offsets.status_topic)
IGNORE_TRANSFORMS = _setting("heliograph.ignore.transforms", BOOL, False)
NOTIFY_WEBHOOK = _setting("heliograph.notify.webhook", kinds.WEBHOOK, "", locations.TOP)
ON_DATA_LOSS = _setting("heliograph.on.data.loss", _POLICY, _MODEL.policies.data_loss)
ON_RECREATED_TOPIC = _setting("heliograph.on.recreated.topic", _POLICY, _MODEL.policies.recreated_topic)
ON_FOREIGN_WRITER = _setting("heliograph.on.foreign.writer", _POLICY, _MODEL.policies.foreign_writer)
ON_REFUSED_RECORD = _setting("heliograph.on.refused.record", _POLICY, _MODEL.policies.refused_record)
ERRORS_TOLERANCE = _setting("errors.tolerance", choice(NONE, ALL_ERRORS), NONE)

# What is kept in sync besides records.
SYNC_TOPIC_CONFIGS_ENABLED = _setting("sync.topic.configs.enabled", BOOL, True)
SYNC_TOPIC_CONFIGS_INTERVAL = _setting("sync.topic.configs.interval.seconds", whole(), _MODEL.topic_sync.configs_every)
SYNC_TOPIC_ACLS_ENABLED = _setting("sync.topic.acls.enabled", BOOL, True)
SYNC_TOPIC_ACLS_INTERVAL = _setting("sync.topic.acls.interval.seconds", whole(), _MODEL.topic_sync.acls_every)
USE_DEFAULTS_FROM = _setting("use.defaults.from", TEXT, "target", locations.FLOW_ONLY)
CONFIG_PROPERTY_FILTER_CLASS = _class("config.property.filter.class", "DefaultConfigPropertyFilter")
TOPIC_FILTER_CLASS = _class("topic.filter.class", "DefaultTopicFilter")
EMIT_OFFSET_SYNCS_ENABLED = _setting("emit.offset-syncs.enabled", BOOL, _MODEL.offset_syncs.enabled)
OFFSET_LAG_MAX = _setting("offset.lag.max", whole(), _MODEL.offset_syncs.lag_max)
OFFSET_SYNCS_LOCATION = _setting("offset-syncs.topic.location", choice("source", "target"), "source")
OFFSET_SYNCS_FACTOR = _setting("offset-syncs.topic.replication.factor", _FACTOR, _MODEL.offset_syncs.replication_factor)
GROUP_NAMES = _setting("groups", PATTERNS, flow.DEFAULT_GROUPS.include)
GROUPS_EXCLUDE = _setting("groups.exclude", PATTERNS, flow.DEFAULT_GROUPS.exclude, old_name="groups.blacklist")
GROUP_FILTER_CLASS = _class("group.filter.class", "DefaultGroupFilter")
REFRESH_GROUPS_ENABLED = _setting("refresh.groups.enabled", BOOL, True)
REFRESH_GROUPS_INTERVAL = _setting("refresh.groups.interval.seconds", whole(), _MODEL.groups.refresh_every)
EMIT_CHECKPOINTS_ENABLED = _setting("emit.checkpoints.enabled", BOOL, True)
EMIT_CHECKPOINTS_INTERVAL = _setting("emit.checkpoints.interval.seconds", whole(), _MODEL.groups.checkpoints_every)
SYNC_GROUP_OFFSETS_ENABLED = _setting("sync.group.offsets.enabled", BOOL, _MODEL.groups.sync_every is not None)
SYNC_GROUP_OFFSETS_INTERVAL = _setting("sync.group.offsets.interval.seconds", whole(), 60)
# The policy of a checkpoint connector that has another one than the source connector.
OF_CHECKPOINTS = "heliograph.checkpoints."
CHECKPOINTS_POLICY_CLASS = _setting(
    f"{OF_CHECKPOINTS}{REPLICATION_POLICY_CLASS.name}", plugins.plugin(*plugins.POLICIES)
)
CHECKPOINTS_POLICY_SEPARATOR = _setting(f"{OF_CHECKPOINTS}{REPLICATION_POLICY_SEPARATOR.name}", kinds.SEPARATOR)
CHECKPOINTS_INTERNAL_SEPARATOR = _setting(f"{OF_CHECKPOINTS}{INTERNAL_TOPIC_SEPARATOR_ENABLED.name}", BOOL)
SYNC_GROUP_DELETES = _setting("heliograph.sync.group.deletes", BOOL, _MODEL.groups.deletes)
CHECKPOINTS_FACTOR = _setting("checkpoints.topic.replication.factor", _FACTOR, _MODEL.groups.replication_factor)
EMIT_HEARTBEATS_ENABLED = _setting("emit.heartbeats.enabled", BOOL, True)
EMIT_HEARTBEATS_INTERVAL = _setting("emit.heartbeats.interval.seconds", whole(), _MODEL.heartbeats.every)
HEARTBEATS_FACTOR = _setting("heartbeats.topic.replication.factor", _FACTOR, _MODEL.heartbeats.replication_factor)

# Clients, security, and Connect's workers.
CLIENT_ID = _setting("client.id", TEXT, _MODEL.source.client_id, locations.CLIENT_CLUSTER)
REQUEST_TIMEOUT = _setting(
    "request.timeout.ms", whole(1, INT_MAX), _MODEL.source.request_timeout * 1000, locations.CLIENT_CLUSTER
)
SEND_BUFFER = _setting("send.buffer.bytes", _BUFFER, _CONNECTING.send_buffer, locations.CLIENT_CLUSTER)
RECEIVE_BUFFER = _setting("receive.buffer.bytes", _BUFFER, _CONNECTING.receive_buffer, locations.CLIENT_CLUSTER)
SETUP_TIMEOUT = _setting(
    "socket.connection.setup.timeout.ms",
    whole(1),
    _CONNECTING.setup_timeout.first * 1000,
    locations.CLIENT_CLUSTER,
)
SETUP_TIMEOUT_MAX = _setting("socket.connection.setup.timeout.max.ms", whole(1), None, locations.CLIENT_CLUSTER)
RECONNECT_BACKOFF = _setting(
    "reconnect.backoff.ms", whole(0), _CONNECTING.reconnect.first * 1000, locations.CLIENT_CLUSTER
)
RECONNECT_BACKOFF_MAX = _setting(
    "reconnect.backoff.max.ms", whole(0), _CONNECTING.reconnect.longest * 1000, locations.CLIENT_CLUSTER
)
RETRY_BACKOFF = _setting("retry.backoff.ms", whole(0), _MODEL.retry_backoff.first * 1000, locations.RECORDS_CLUSTER)
RETRY_BACKOFF_MAX = _setting(
    "retry.backoff.max.ms", whole(0), _MODEL.retry_backoff.longest * 1000, locations.RECORDS_CLUSTER
)
CONNECTIONS_MAX_IDLE = _setting(
    "connections.max.idle.ms", whole(), _CONNECTING.max_idle * 1000, locations.CLIENT_CLUSTER
)
METADATA_MAX_AGE = _setting(
    "metadata.max.age.ms", whole(0), _CONNECTING.metadata_max_age * 1000, locations.CLIENT_CLUSTER
)
CLIENT_DNS_LOOKUP = _setting(
    "client.dns.lookup",
    choice(connecting.USE_ALL_DNS_IPS, connecting.CANONICAL_BOOTSTRAP_SERVERS, "default"),
    _CONNECTING.dns_lookup,
    locations.CLIENT_CLUSTER,
)
FETCH_MAX_BYTES = _setting("fetch.max.bytes", _SIZE, _MODEL.reading.fetch_max_bytes, locations.CONSUMER)
MAX_PARTITION_FETCH_BYTES = _setting(
    "max.partition.fetch.bytes", _SIZE, _MODEL.reading.max_partition_fetch_bytes, locations.CONSUMER
)
FETCH_MIN_BYTES = _setting("fetch.min.bytes", _SIZE, _MODEL.reading.fetch_min_bytes, locations.CONSUMER)
FETCH_MAX_WAIT = _setting("fetch.max.wait.ms", _SIZE, _MODEL.reading.fetch_max_wait * 1000, locations.CONSUMER)
ISOLATION_LEVEL = _setting(
    "isolation.level", choice("read_uncommitted", "read_committed"), "read_committed", locations.CONSUMER
)
CLIENT_RACK = _setting("client.rack", TEXT, "", locations.CONSUMER)
AUTO_OFFSET_RESET = _setting("auto.offset.reset", choice("earliest", "latest", "none"), "earliest", locations.CONSUMER)
MAX_REQUEST_SIZE = _setting("max.request.size", whole(1, INT_MAX), _MODEL.writing.max_request_size, locations.PRODUCER)
BATCH_SIZE = _setting("batch.size", _SIZE, _MODEL.writing.join_up_to, locations.PRODUCER)
COMPRESSION_TYPE = _setting("compression.type", choice(*COMPRESSION_TYPES), None, locations.PRODUCER)
COMPRESSION_LEVELS = {
    "gzip": _setting("compression.gzip.level", whole(-1, 9, but_not=0), -1, locations.PRODUCER),
    "lz4": _setting("compression.lz4.level", whole(1, 17), 9, locations.PRODUCER),
    "zstd": _setting("compression.zstd.level", whole(-131072, 22), 3, locations.PRODUCER),
}
SECURITY_PROTOCOL = _security(
    "security.protocol",
    choice(security.PLAINTEXT, security.SSL, security.SASL_PLAINTEXT, security.SASL_SSL),
    security.PLAINTEXT,
)
SSL_PROTOCOL = _security("ssl.protocol", kinds.HIGHEST_TLS, "TLSv1.3")
SSL_ENABLED_PROTOCOLS = _security("ssl.enabled.protocols", kinds.TLS_VERSIONS, security.Tls().protocols)
SSL_CIPHER_SUITES = _security("ssl.cipher.suites", NAMES, "")
SSL_ENDPOINT_IDENTIFICATION = _security("ssl.endpoint.identification.algorithm", kinds.HOST_NAME_CHECK, "https")
SSL_TRUSTSTORE_TYPE = _security("ssl.truststore.type", _STORE_TYPE, security.TrustStore().type)
SSL_TRUSTSTORE_LOCATION = _security("ssl.truststore.location", TEXT)
SSL_TRUSTSTORE_PASSWORD = _security("ssl.truststore.password", SECRET)
SSL_TRUSTSTORE_CERTIFICATES = _security("ssl.truststore.certificates", SECRET)
SSL_KEYSTORE_TYPE = _security("ssl.keystore.type", _STORE_TYPE, security.KeyStore().type)
SSL_KEYSTORE_LOCATION = _security("ssl.keystore.location", TEXT)
SSL_KEYSTORE_PASSWORD = _security("ssl.keystore.password", SECRET)
SSL_KEY_PASSWORD = _security("ssl.key.password", SECRET)
SSL_KEYSTORE_KEY = _security("ssl.keystore.key", SECRET)
SSL_KEYSTORE_CHAIN = _security("ssl.keystore.certificate.chain", SECRET)
SASL_MECHANISM = _security("sasl.mechanism", choice(*security.MECHANISMS), security.GSSAPI)
SASL_JAAS_CONFIG = _security("sasl.jaas.config", SECRET)
SASL_CLIENT_CALLBACK_HANDLER = _security("sasl.client.callback.handler.class", TEXT)
SASL_LOGIN_CALLBACK_HANDLER = _security("sasl.login.callback.handler.class", TEXT)
SASL_KERBEROS_SERVICE_NAME = _security("sasl.kerberos.service.name", TEXT)
SASL_LOGIN_REFRESH_WINDOW = _security("sasl.login.refresh.window.factor", decimal(0.5, 1), _OAUTH.refresh_at)
SASL_LOGIN_CONNECT_TIMEOUT = _security("sasl.login.connect.timeout.ms", _SIZE)
SASL_LOGIN_READ_TIMEOUT = _security("sasl.login.read.timeout.ms", _SIZE)
OAUTH_TOKEN_ENDPOINT = _security("sasl.oauthbearer.token.endpoint.url", TEXT)
OAUTH_CLIENT_ID = _security("sasl.oauthbearer.client.credentials.client.id", TEXT)
OAUTH_CLIENT_SECRET = _security("sasl.oauthbearer.client.credentials.client.secret", SECRET)
OAUTH_SCOPE = _security("sasl.oauthbearer.scope", TEXT)
OAUTH_HEADER_URLENCODE = _security("sasl.oauthbearer.header.urlencode", BOOL, _OAUTH.url_encode_header)
OAUTH_RETRIEVER = _security(
    "sasl.oauthbearer.jwt.retriever.class", TEXT, "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
)

# The REST address: Connect's names, and Heliograph's own. `heliograph serve` reads them from the worker's file.
LISTENERS = _setting("listeners", kinds.LISTENERS, None, locations.TOP)
LISTENERS_OPTIONS = _setting("listeners.*", TEXT, None, locations.TOP)
SSL_CLIENT_AUTH = _setting(
    "ssl.client.auth",
    choice(rest_settings.NONE, rest_settings.REQUESTED, rest_settings.REQUIRED),
    rest_settings.NONE,
    locations.TOP,
)
REST_EXTENSIONS = _setting("rest.extension.classes", NAMES, "", locations.WORKER_TOP_FIRST)
ALLOW_ORIGIN = _setting("access.control.allow.origin", TEXT, "", locations.TOP)
ALLOW_METHODS = _setting("access.control.allow.methods", NAMES, "", locations.TOP)
REST_USERS = _setting("heliograph.rest.users", TEXT, "", locations.TOP)
REST_TOKENS = _setting("heliograph.rest.tokens", TEXT, "", locations.TOP)
REST_ROLES = _setting("heliograph.rest.roles", TEXT, "", locations.TOP)
REST_JWKS_URL = _setting("heliograph.rest.jwks.url", kinds.HTTPS, "", locations.TOP)
REST_JWKS_AUDIENCE = _setting("heliograph.rest.jwks.audience", TEXT, "", locations.TOP)
REST_JWKS_ISSUER = _setting("heliograph.rest.jwks.issuer", TEXT, "", locations.TOP)
REST_JWKS_ROLE_CLAIM = _setting("heliograph.rest.jwks.role.claim", TEXT, "", locations.TOP)
REST_JWKS_CA = _setting("heliograph.rest.jwks.ca", TEXT, "", locations.TOP)
REST_OPEN = _setting("heliograph.rest.open", kinds.PATHS, "", locations.TOP)
REST_ALLOW = _setting(
    "heliograph.rest.allow",
    subset(rest_settings.CLASSES, rest_settings.PROVIDERS, rest_settings.FILES, may_be_empty=True),
    "",
    locations.TOP,
)
REST_REQUESTS_PER_SECOND = _setting(
    "heliograph.rest.requests.per.second", whole(1, INT_MAX), rest_settings.REQUESTS_PER_SECOND, locations.TOP
)

OFFSET_STORAGE_TOPIC = _setting("offset.storage.topic", TEXT, "mm2-offsets.A.internal", locations.WORKER_TOP_FIRST)
OFFSET_FLUSH_INTERVAL = _setting(
    "offset.flush.interval.ms", whole(1), _MODEL.flush_offsets_every * 1000, locations.WORKER
)
GROUP_ID = _setting("group.id", TEXT, "A-mm2", locations.WORKER)
SESSION_TIMEOUT = _setting(
    "session.timeout.ms", whole(1, INT_MAX), _MEMBERSHIP.session_timeout * 1000, locations.WORKER
)
HEARTBEAT_INTERVAL = _setting(
    "heartbeat.interval.ms", whole(1, INT_MAX), _MEMBERSHIP.heartbeat_interval * 1000, locations.WORKER
)
REBALANCE_TIMEOUT = _setting(
    "rebalance.timeout.ms", whole(1, INT_MAX), _MEMBERSHIP.rebalance_timeout * 1000, locations.WORKER
)
REBALANCE_DELAY = _setting(
    "scheduled.rebalance.max.delay.ms", whole(0, INT_MAX), _MEMBERSHIP.rebalance_delay * 1000, locations.WORKER
)

FILTER_CLASSES = (TOPIC_FILTER_CLASS, GROUP_FILTER_CLASS, CONFIG_PROPERTY_FILTER_CLASS)
_OF_CHECKPOINT: tuple[Setting[object], ...] = (
    *(GROUP_NAMES, GROUPS_EXCLUDE, GROUP_FILTER_CLASS, REFRESH_GROUPS_ENABLED, REFRESH_GROUPS_INTERVAL),
    *(EMIT_CHECKPOINTS_ENABLED, EMIT_CHECKPOINTS_INTERVAL, CHECKPOINTS_FACTOR),
    *(SYNC_GROUP_OFFSETS_ENABLED, SYNC_GROUP_OFFSETS_INTERVAL, SYNC_GROUP_DELETES),
    *(CHECKPOINTS_POLICY_CLASS, CHECKPOINTS_POLICY_SEPARATOR, CHECKPOINTS_INTERNAL_SEPARATOR),
)
# Names that only one connector reads; the source connector reads all others.
READ_BY_ONE = {
    flow.CHECKPOINT: {name for setting in _OF_CHECKPOINT for name in setting.names} | {"task.assigned.groups"},
    flow.HEARTBEAT: {EMIT_HEARTBEATS_ENABLED.name, EMIT_HEARTBEATS_INTERVAL.name, HEARTBEATS_FACTOR.name},
}


def read_by_others(part: str, parts: Iterable[str] = _PARTS) -> set[str]:
    """The names that only another one of the parts reads."""
    return {name for other in parts if other != part for name in READ_BY_ONE.get(other, ())}
