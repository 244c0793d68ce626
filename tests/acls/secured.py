"""Two clusters on which a flow's principals are allowed nothing but what `heliograph acls` prints.

The tests themselves use the plaintext listener, whose anonymous clients are super users; flows log in.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from heliograph.control.principals import Principal
from heliograph.model.acl import Grant
from heliograph.model.flow import Cluster
from heliograph.model.secret import Secret
from heliograph.model.security import PLAIN, PasswordLogin, Sasl, Security
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from logs import Log, until

_LISTENER = "LOGIN"
_USERS = ("mirror", "reader", "writer")
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
    f'user_{user}="{user}-secret"' for user in _USERS
)
SPEC = ClusterSpec(
    listeners={_LISTENER: "SASL_PLAINTEXT"},
    settings={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": PLAIN,
        "listener.name.login.plain.sasl.jaas.config": f"{_LOGIN};",
        "log.retention.ms": "-1",
    },
    fast_start=True,
)


@dataclass(frozen=True)
class Secured:
    """One of the clusters."""

    log: Log
    login: Log  # its address for those who log in

    def as_user(self, alias: str, user: str) -> Cluster:
        login = PasswordLogin(user, Secret(f"{user}-secret"))
        return replace(self.login.cluster, alias=alias, security=Security(None, Sasl(PLAIN, login)))

    def allow(self, principal: str, grants: Iterable[Grant]) -> None:
        acls = [_acl(principal, grant) for grant in grants]
        admin: Any = KafkaAdminClient(bootstrap_servers=self.log.bootstrap)
        assert not admin.create_acls(acls)["failed"]
        until(lambda: all(admin.describe_acls(_filter(acl))[0] for acl in acls))
        admin.close()

    def revoke(self, principal: str, grants: Iterable[Grant]) -> None:
        """The broker's authorizer answers from what it enforces."""
        filters = [_filter(_acl(principal, grant)) for grant in grants]
        admin: Any = KafkaAdminClient(bootstrap_servers=self.log.bootstrap)
        admin.delete_acls(filters)
        until(lambda: not any(admin.describe_acls(one_acl)[0] for one_acl in filters))
        admin.close()

    def revoke_all(self, principal: str) -> None:
        pattern = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        everything = ACLFilter(principal, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
        admin: Any = KafkaAdminClient(bootstrap_servers=self.log.bootstrap)
        admin.delete_acls([everything])
        until(lambda: not admin.describe_acls(everything)[0])
        admin.close()


def start(sandbox: Sandbox) -> tuple[Secured, Secured]:
    a, b = sandbox.start({"A": SPEC, "B": SPEC})
    return _secured(a), _secured(b)


def _secured(cluster: SandboxCluster) -> Secured:
    return Secured(Log(cluster.bootstrap), Log(cluster.bootstrap_of(_LISTENER)))


def allow_all(clusters: dict[str, Secured], principals: Collection[Principal]) -> None:
    for principal in principals:
        clusters[principal.cluster.alias].allow(principal.name, principal.grants())


def _acl(principal: str, grant: Grant) -> ACL:
    resource = grant.resource
    pattern = ResourcePattern(
        ResourceType[resource.type.upper().replace("-", "_")],
        resource.name,
        ACLResourcePatternType[resource.pattern.upper()],
    )
    return ACL(principal, "*", _operation(grant.operation), ACLPermissionType.ALLOW, pattern)


def _operation(name: str) -> ACLOperation:
    plain = {operation.name.replace("_", ""): operation for operation in ACLOperation}
    return plain[name.upper()]


def _filter(acl: ACL) -> ACLFilter:
    return ACLFilter(acl.principal, acl.host, acl.operation, acl.permission_type, acl.resource_pattern)
