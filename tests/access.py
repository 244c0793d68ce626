"""Clusters with an authorizer that allows everything that no ACL is about."""

from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from logs import Log, until

GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:nobody",
}


def deny(log: Log, kind: ResourceType, name: str, operation: ACLOperation) -> None:
    """Denies one operation on a resource to everybody, and allows all others."""
    admin: Any = KafkaAdminClient(bootstrap_servers=log.bootstrap)
    rule = ACL("User:ANONYMOUS", "*", operation, ACLPermissionType.DENY, ResourcePattern(kind, name))
    # Once a resource has an ACL, everything that no ACL allows is denied.
    rest = ACL("User:ANONYMOUS", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
    all_of_it = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, ResourcePattern(kind, name))
    admin.create_acls([rule, rest])
    until(lambda: len(admin.describe_acls(all_of_it)[0]) >= 2)
    admin.close()
