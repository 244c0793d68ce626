"""ACLs as commands for `kafka-acls.sh`, as Strimzi's KafkaUser, and as JSON."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from heliograph.control.principals import Principal
from heliograph.control.required_acls import Feature
from heliograph.model.acl import CLUSTER, LITERAL, TRANSACTIONAL_ID, Resource
from heliograph.model.security import SCRAM_SHA_512, UNSECURED


def commands(principals: Sequence[Principal]) -> Iterator[str]:
    for principal in principals:
        yield f"# cluster {principal.cluster.alias}, {principal.name}, for {', '.join(principal.flows)}"
        for resource, operations in principal.by_resource().items():
            yield f"# for {', '.join(_features(principal, resource))}"
            yield _command(principal, resource, operations)
        for grant in principal.optional():
            lost = ", ".join(need.feature for need in principal.needs if need.grant == grant)
            yield f"# optional; without it, {lost}:"
            yield f"# {_command(principal, grant.resource, [grant.operation])}"
        yield ""


def _command(principal: Principal, resource: Resource, operations: Sequence[str]) -> str:
    cluster = principal.cluster
    words = [
        "kafka-acls.sh",
        "--bootstrap-server",
        ",".join(f"{host}:{port}" for host, port in cluster.bootstrap_servers),
    ]
    if cluster.security != UNSECURED:
        words += ["--command-config", "admin.properties"]
    words += ["--add", "--allow-principal", principal.name, "--allow-host", "*"]
    for operation in operations:
        words += ["--operation", operation]
    words.append(f"--{resource.type}")
    if resource.type != CLUSTER:
        words.append(resource.name)
        words += [] if resource.pattern == LITERAL else ["--resource-pattern-type", resource.pattern]
    return shlex.join(words)


def _features(principal: Principal, resource: Resource) -> list[str]:
    granted = [grant for grant in principal.grants() if grant.resource == resource]
    lost = {feature for grant in granted for feature in principal.lost_without(grant)}
    return [feature.label for feature in Feature if feature in lost]


def kafka_users(principals: Sequence[Principal]) -> str:
    return "---\n".join(
        yaml.safe_dump(_kafka_user(principal), sort_keys=False, allow_unicode=True) for principal in principals
    )


def _kafka_user(principal: Principal) -> dict[str, Any]:
    security = principal.cluster.security
    spec: dict[str, Any] = {}
    if security.sasl is not None and security.sasl.mechanism == SCRAM_SHA_512:
        spec["authentication"] = {"type": "scram-sha-512"}
    elif security.sasl is None and security.tls is not None and security.tls.key is not None:
        spec["authentication"] = {"type": "tls"}
    acls = [
        {"resource": _strimzi_resource(resource), "operations": list(operations), "host": "*"}
        for resource, operations in principal.by_resource().items()
    ]
    spec["authorization"] = {"type": "simple", "acls": acls}
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaUser",
        "metadata": {"name": _user_name(principal.name), "labels": {"strimzi.io/cluster": principal.cluster.alias}},
        "spec": spec,
    }


def _strimzi_resource(resource: Resource) -> dict[str, str]:
    if resource.type == CLUSTER:
        return {"type": CLUSTER}
    kind = "transactionalId" if resource.type == TRANSACTIONAL_ID else resource.type
    return {"type": kind, "name": resource.name, "patternType": "prefix" if resource.pattern != LITERAL else LITERAL}


def _user_name(principal: str) -> str:
    """Kubernetes' names have small letters, digits, dots and hyphens."""
    name = principal.removeprefix("User:").removeprefix("CN=").partition(",")[0]
    return re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")


def as_json(principals: Sequence[Principal]) -> list[dict[str, Any]]:
    return [
        {
            "cluster": principal.cluster.alias,
            "principal": principal.name,
            "principal_is_known": principal.is_known,
            "flows": list(principal.flows),
            "resource_type": grant.resource.type,
            "name": grant.resource.name,
            "pattern": grant.resource.pattern,
            "operation": grant.operation,
            "host": "*",
            "optional": is_optional,
            "features": [feature.label for feature in features],
            "lost_without_it": [feature.value for feature in features],
        }
        for principal in principals
        for is_optional, granted in ((False, principal.grants()), (True, principal.optional()))
        for grant in granted
        for features in [
            [need.feature for need in principal.needs if need.grant == grant]
            if is_optional
            else principal.lost_without(grant)
        ]
    ]
