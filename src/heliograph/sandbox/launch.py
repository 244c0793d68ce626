"""Prepares the folder of a broker or a ZooKeeper, and returns the command that runs it there."""

import re
import secrets
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path

from heliograph.sandbox.broker import (
    advertised_listeners,
    common_settings,
    java_command,
    kraft_settings,
    write_properties,
    zookeeper_server_settings,
    zookeeper_settings,
)
from heliograph.sandbox.cluster_ports import ClusterPorts
from heliograph.sandbox.distribution import Distribution
from heliograph.sandbox.spec import ClusterSpec


def prepare_broker(
    broker: int, spec: ClusterSpec, kafka: Distribution, ports: ClusterPorts, folder: Path, first_folder: Path
) -> list[str]:
    """`first_folder` is that of the cluster's first broker, which holds the cluster id."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    if kafka.kraft:
        identity = kraft_settings(broker, ports.controllers, ports.listeners[broker])
        _format(data, broker, kafka, first_folder)
    else:
        identity = zookeeper_settings(broker, ports.zookeeper, ports.listeners[broker])
    advertised = {name: given[broker - 1] for name, given in spec.advertised_ports.items() if broker <= len(given)}
    identity["advertised.listeners"] = advertised_listeners(ports.listeners[broker], advertised)
    if broker <= len(spec.racks):
        identity["broker.rack"] = spec.racks[broker - 1]
    settings = common_settings(spec.brokers) | identity | {"log.dirs": str(data)} | dict(spec.settings)
    write_properties(folder / "server.properties", settings)
    return java_command(
        kafka.java,
        kafka.classpath,
        ["kafka.Kafka", "server.properties"],
        version=kafka.version,
        folder=folder,
        heap_mb=spec.heap_mb,
        gc=spec.gc,
        fast_start=spec.fast_start,
        archive=kafka.archive,
        flags=spec.jvm_flags,
    )


def prepare_zookeeper(kafka: Distribution, port: int, folder: Path) -> list[str]:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_properties(folder / "server.properties", zookeeper_server_settings(port, folder / "data"))
    main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", "server.properties"]
    return java_command(
        kafka.java, kafka.classpath, main, version=kafka.version, folder=folder, heap_mb=64, fast_start=True
    )


def _format(data: Path, broker: int, kafka: Distribution, first_folder: Path) -> None:
    """Does what `kafka-storage format` does to an empty data directory; leaves one in use as it is."""
    if (data / "meta.properties").exists():
        return
    assert kafka.checkpoint is not None
    shutil.copyfile(kafka.checkpoint, data / "bootstrap.checkpoint")
    identity = {"version": "1", "cluster.id": _cluster_id(first_folder), "node.id": str(broker)}
    write_properties(data / "meta.properties", identity)


def _cluster_id(first_folder: Path) -> str:
    """The id in the data of the cluster's first broker, of this or an earlier run, else a new one."""
    first = first_folder / "data" / "meta.properties"
    if first.exists() and (match := re.search(r"^cluster\.id *= *(\S+)", first.read_text(), re.MULTILINE)):
        return match[1]
    # Kafka's tools take an id that begins with a dash for an option.
    while (new := urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return new
