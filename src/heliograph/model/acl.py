"""ACLs as an administrator grants them: which operation on which resource; and which resources a filter needs.

Names of operations, resource types and patterns are those of `kafka-acls.sh`.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from heliograph.model.names import Matches, NameFilter

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = "topic", "group", "cluster", "transactional-id"
LITERAL, PREFIXED = "literal", "prefixed"
ANY_NAME, THE_CLUSTER = "*", "kafka-cluster"
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = "Read", "Write", "Create", "Delete", "Alter", "Describe"
DESCRIBE_CONFIGS, ALTER_CONFIGS = "DescribeConfigs", "AlterConfigs"
CLUSTER_ACTION, IDEMPOTENT_WRITE = "ClusterAction", "IdempotentWrite"

# Authorizers allow an operation to whoever is allowed one of these.
_IMPLIED_BY = {DESCRIBE: frozenset({READ, WRITE, DELETE, ALTER}), DESCRIBE_CONFIGS: frozenset({ALTER_CONFIGS})}

# One piece of a pattern that stands for itself, if no quantifier follows. A single dot is taken for a dot: people write
# `orders.v1` for the topic of that name.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_\-.]|\\[.\-_])(?![*+?{])")
_ANYTHING = (".*", ".+")


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    type: str
    name: str
    pattern: str = LITERAL

    @property
    def is_single(self) -> bool:
        """Whether it has one name."""
        return self.pattern == LITERAL and self.name != ANY_NAME

    def covers(self, other: "Resource") -> bool:
        """Whether an ACL of this resource is one of the other, too."""
        if self.type != other.type:
            return False
        if self.pattern == LITERAL:
            return self.name == ANY_NAME or self == other
        return other.name.startswith(self.name) and other != Resource(other.type, ANY_NAME)

    def __str__(self) -> str:
        if self.type == CLUSTER:
            return "the cluster"
        name = f"{self.name}*" if self.pattern == PREFIXED else self.name
        return f"{self.type} {name}"


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One operation that is allowed on a resource."""

    resource: Resource
    operation: str

    def allows(self, other: "Grant") -> bool:
        same = self.operation == other.operation or self.operation in _IMPLIED_BY.get(other.operation, ())
        return same and self.resource.covers(other.resource)

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource}"


def fewest(grants: Iterable[Grant]) -> list[Grant]:
    """Without those that others imply: Describe where there is Read, one topic where there are all."""
    distinct = sorted(set(grants))
    return [grant for grant in distinct if not any(other != grant and other.allows(grant) for other in distinct)]


@dataclass(frozen=True, slots=True)
class Named:
    """The resources that a filter needs; `wider` are patterns for which they allow more names than match."""

    resources: tuple[Resource, ...]
    wider: tuple[str, ...] = ()


def resources_of(type: str, names: Matches, existing: Collection[str] | None = None) -> Named:
    """The resources that cover all names of a filter. Patterns become names and prefixes: no ACL has an expression, or
    an exclusion. With `existing` they become the names that match now, and those that are written out."""
    if not isinstance(names, NameFilter):
        if existing is None:
            return Named((Resource(type, ANY_NAME),), (f"class {names.__class__.__name__}",))
        return Named(tuple(Resource(type, name) for name in sorted(existing) if names.matches(name)))
    found: set[Resource] = set()
    wider: list[str] = []
    for pattern in (part for include in names.include for part in _alternatives(include)):
        resource, is_exact = _resource(type, pattern)
        if existing is None or resource.is_single:
            found.add(resource)
            wider += [] if is_exact else [pattern]
    found |= {Resource(type, name) for name in existing or () if names.matches(name)}
    excluded = {resource for resource in found if resource.is_single and not names.matches(resource.name)}
    return Named(tuple(widest(found - excluded)), tuple(wider))


def single_names(names: Matches) -> set[str]:
    """The names that a filter spells out."""
    if not isinstance(names, NameFilter):
        return set()
    return {resource.name for resource in resources_of(TOPIC, names).resources if resource.is_single}


def widest(resources: Collection[Resource]) -> list[Resource]:
    """Without those that others cover."""
    return sorted(
        resource
        for resource in resources
        if not any(other != resource and other.covers(resource) for other in resources)
    )


def _alternatives(pattern: str) -> list[str]:
    """`a|b` is two patterns, unless something else in it may use the sign."""
    return [pattern] if re.search(r"[()\[\]]|\\Q", pattern) else pattern.split("|")


def _resource(type: str, pattern: str) -> tuple[Resource, bool]:
    """The resource of one pattern, and whether it allows no other names."""
    name, at = "", 0
    while (plain := _PLAIN.match(pattern, at)) is not None:
        name += plain.group()[-1]
        at = plain.end()
    rest = pattern[at:]
    if not rest:
        return Resource(type, name), True
    if not name:
        return Resource(type, ANY_NAME), rest in _ANYTHING
    return Resource(type, name, PREFIXED), rest in _ANYTHING
