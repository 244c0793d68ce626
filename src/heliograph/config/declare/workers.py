"""Declarations: MirrorMaker 2's driver and the Connect workers it starts. Heliograph has neither; files may still
name them."""

from __future__ import annotations

from heliograph.config.declare import locations
from heliograph.config.declare.kinds import Bool, Choice, Kind, Names, Text, Whole
from heliograph.config.declare.setting import LocationSet, Setting, SettingGroup

_CLASS = Text("class")
_FACTOR = Whole(-1, 32767, but_not=0)
_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


def _driver(name: str, kind: Kind[object], default: str | None, about: str) -> Setting[object]:
    return Setting(name, kind, default, about, locations.TOP)


def _worker(
    name: str,
    kind: Kind[object],
    default: str | None,
    about: str,
    where: LocationSet = locations.WORKER,
    ignored_because: str = "",
) -> Setting[object]:
    return Setting(name, kind, default, about, where, ignored_because=ignored_because)


def _shared(name: str, kind: Kind[object], default: str | None, about: str) -> Setting[object]:
    return Setting(name, kind, default, about, locations.WORKER_TOP_FIRST)


GROUP_ID = Setting(
    "group.id",
    Text(),
    "A-mm2",
    "Connect group of MM2's workers of a flow: while it has members, Heliograph does not take over.",
    locations.WORKER,
    supported=True,
)
OFFSET_STORAGE_TOPIC = Setting(
    "offset.storage.topic",
    Text(),
    "mm2-offsets.A.internal",
    "Topic of Connect's offsets of a flow: where MM2 has noted how far it has come, when Heliograph takes over.",
    locations.WORKER_TOP_FIRST,
    supported=True,
)


def _converter(name: str, kind: Kind[object], default: str | None, about: str) -> Setting[object]:
    return Setting(name, kind, default, about, locations.CONVERTER)


_DRIVER = (
    _driver(
        "dedicated.mode.enable.internal.rest", Bool(), "false", "Whether MM2's processes talk to each other over HTTP."
    ),
    _driver("listeners", Names(), "http://:8083", "Where MM2's internal HTTP server listens."),
    _driver("listeners.*", Text(), None, "TLS options of those listeners (`listeners.https.ssl...`)."),
    _driver("rest.advertised.host.name", Text(), None, "Host name told to other processes."),
    _driver("rest.advertised.port", Whole(), None, "Port told to other processes."),
    _driver("rest.advertised.listener", Text(), None, "Protocol told to other processes."),
    _driver("access.control.allow.origin", Text(), "", "Which web pages may call the HTTP server."),
    _driver("access.control.allow.methods", Text(), "", "With which methods."),
    _driver("response.http.headers.config", Text(), "", "Headers added to its answers."),
    _driver(
        "ssl.client.auth", Choice(("none", "requested", "required")), "none", "Whether its callers need a certificate."
    ),
)
_STORAGE = (
    OFFSET_STORAGE_TOPIC,
    _shared("offset.storage.partitions", Whole(-1, but_not=0), "25", "Its partitions."),
    _shared("offset.storage.replication.factor", _FACTOR, "3", "Its replicas."),
    _shared("offset.storage.*", Text(), None, "Any other setting of that topic."),
    _shared("config.storage.topic", Text(), "mm2-configs.A.internal", "Topic for Connect's own configuration."),
    _shared("config.storage.replication.factor", _FACTOR, "3", "Its replicas."),
    _shared("config.storage.*", Text(), None, "Any other setting of that topic."),
    _shared("status.storage.topic", Text(), "mm2-status.A.internal", "Topic for the state of Connect's tasks."),
    _shared("status.storage.partitions", Whole(-1, but_not=0), "5", "Its partitions."),
    _shared("status.storage.replication.factor", _FACTOR, "3", "Its replicas."),
    _shared("status.storage.*", Text(), None, "Any other setting of that topic."),
    _shared("task.shutdown.graceful.timeout.ms", Whole(), "5000", "How long tasks may take to end."),
    _shared("worker.sync.timeout.ms", Whole(), "3000", "How long a worker that fell behind tries to catch up."),
    _shared("worker.unsync.backoff.ms", Whole(), "300000", "How long it stays away if it cannot."),
)
_CONVERTERS = (
    _converter("key.converter", _CLASS, _CONVERTER, "Class that turns keys into bytes."),
    _converter("key.converter.*", Text(), None, "Its options."),
    _converter("value.converter", _CLASS, _CONVERTER, "Class that turns values into bytes."),
    _converter("value.converter.*", Text(), None, "Its options."),
    _converter("header.converter", _CLASS, _CONVERTER, "Class that turns headers into bytes."),
    _converter("header.converter.*", Text(), None, "Its options."),
)
_WORKER = (
    _worker("offset.flush.interval.ms", Whole(), "60000", "How often Connect commits source offsets."),
    _worker("offset.flush.timeout.ms", Whole(), "5000", "How long that may take."),
    _worker(
        "exactly.once.source.support",
        Choice(("disabled", "preparing", "enabled")),
        "disabled",
        "Whether Connect writes in transactions.",
        ignored_because="Heliograph always writes exactly once",
    ),
    GROUP_ID,
    _worker("session.timeout.ms", Whole(), "10000", "Silence after which a worker counts as gone."),
    _worker("heartbeat.interval.ms", Whole(), "3000", "How often a worker shows it is there."),
    _worker("rebalance.timeout.ms", Whole(), "60000", "How long workers may take to agree on who does what."),
    _worker(
        "scheduled.rebalance.max.delay.ms",
        Whole(),
        "300000",
        "How long a lost worker's tasks wait for it to come back.",
    ),
    _worker("connect.protocol", Choice(("eager", "compatible", "sessioned")), "sessioned", "How workers share tasks."),
    _worker("inter.worker.key.generation.algorithm", Text(), "HmacSHA256", "How keys between workers are made."),
    _worker("inter.worker.key.size", Whole(), None, "How long those keys are."),
    _worker("inter.worker.key.ttl.ms", Whole(), "3600000", "How long they are used."),
    _worker("inter.worker.signature.algorithm", Text(), "HmacSHA256", "How requests between workers are signed."),
    _worker("inter.worker.verification.algorithms", Names(), "HmacSHA256", "Which signatures are accepted."),
    _worker("topic.tracking.enable", Bool(), "true", "Whether Connect keeps a list of each connector's topics."),
    _worker("topic.tracking.allow.reset", Bool(), "true", "Whether that list may be emptied."),
    _worker("topic.creation.enable", Bool(), "true", "Whether Connect may create topics."),
    _worker(
        "connector.client.config.override.policy",
        Text(),
        "All",
        "Which client settings a connector may change; MM2 allows all.",
    ),
    _worker("plugin.path", Names(), None, "Directories with plugins."),
    _worker("plugin.discovery", Text(), "hybrid_warn", "How plugins are found."),
    _worker("admin.listeners", Names(), None, "Where Connect's administrative HTTP server listens."),
    _worker("admin.listeners.*", Text(), None, "TLS options of those listeners."),
    _worker("rest.extension.classes", Names(), "", "Classes that add to Connect's HTTP server."),
    _worker("metrics.context.*", Text(), None, "Labels added to metrics."),
)

GROUPS = (
    SettingGroup(
        "MirrorMaker 2's driver",
        "Read from the top level only.",
        _DRIVER,
        "Heliograph's processes do not talk to each other over HTTP",
    ),
    SettingGroup(
        "Connect's topics and tasks",
        "At top level these win over `B.`, the reverse of what one expects.",
        _STORAGE,
        "there is no Connect cluster that keeps its state there",
    ),
    SettingGroup(
        "Converters",
        "MirrorMaker 2 takes bytes as they are.",
        _CONVERTERS,
        "records are copied as the bytes that they are",
    ),
    SettingGroup(
        "Connect workers",
        "Read only with the alias of the target in front.",
        _WORKER,
        "there are no Connect workers",
    ),
)
