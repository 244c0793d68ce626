"""What a caller of the REST API may do. A viewer may read, an operator may do everything; of all flows or of some."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

ALL_FLOWS = "*"
EVERYONE = "*"  # in a file of roles: all callers that have logged in
VIEWER, OPERATOR = "viewer", "operator"
_READING = ("GET", "HEAD", "OPTIONS")
_OWN = ["heliograph", "v1"]
# For every caller with a role. Lists contain only the caller's flows; a posted config is checked when it is read.
_FOR_EVERYONE = {
    ("GET", "/"),
    ("GET", "/health"),
    ("GET", "/connectors"),
    ("POST", "/connectors"),
    ("GET", "/heliograph/v1/flows"),
    ("GET", "/heliograph/v1/events"),
    ("GET", "/heliograph/v1/members"),
    ("GET", "/heliograph/v1/docs"),
    ("GET", "/heliograph/v1/openapi.json"),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """`sees` and `operates` have names of flows, or ALL_FLOWS."""

    name: str
    sees: frozenset[str] = frozenset()
    operates: frozenset[str] = frozenset()

    @property
    def has_a_role(self) -> bool:
        return bool(self.sees or self.operates)

    def may_see(self, flow: str) -> bool:
        return not self.operates.isdisjoint((ALL_FLOWS, flow)) or not self.sees.isdisjoint((ALL_FLOWS, flow))

    def may_operate(self, flow: str) -> bool:
        return not self.operates.isdisjoint((ALL_FLOWS, flow))


ANYONE = Caller("", operates=frozenset({ALL_FLOWS}))  # where nobody needs to log in


def with_roles(name: str, roles: Iterable[str]) -> Caller:
    """`roles` such as `viewer` and `operator:A->B`. Raises ValueError for a role that does not exist."""
    sees: set[str] = set()
    operates: set[str] = set()
    for role in filter(None, (role.strip() for role in roles)):
        kind, _, flow = role.partition(":")
        if kind not in (VIEWER, OPERATOR):
            raise ValueError(f"'{role}' is no role: write viewer, operator, viewer:A->B or operator:A->B")
        (sees if kind == VIEWER else operates).add(flow.strip() or ALL_FLOWS)
    return Caller(name, frozenset(sees), frozenset(operates))


def refusal(caller: Caller, method: str, path: str, flow_of_connector: Callable[[str], str | None]) -> str:
    """Why the caller may not send this request; empty if it may. `flow_of_connector` returns the name of the flow of a
    connector, None if there is no such connector."""
    if not caller.has_a_role:
        return f"{caller.name} has no role: heliograph.rest.roles gives one"
    allows, role = (caller.may_see, VIEWER) if method in _READING else (caller.may_operate, OPERATOR)
    if allows(ALL_FLOWS):
        return ""
    flow = _flow(path, flow_of_connector)
    if flow is not None and not allows(flow):
        return f"{caller.name} is no {role} of {flow}"
    if flow is not None or (method, path) in _FOR_EVERYONE or _is_new_connector(method, path, flow_of_connector):
        return ""
    if _is_about_plugins(method, path) and (method in _READING or caller.operates):
        return ""
    return f"{caller.name} is no {role} of all flows"


def _flow(path: str, flow_of_connector: Callable[[str], str | None]) -> str | None:
    """The flow that a path is about; None if it is about none."""
    parts = path.split("/")[1:] or [""]  # a client may send a path without a slash
    if parts[0] == "connectors" and len(parts) > 1:
        return flow_of_connector(parts[1])
    if parts[:3] == [*_OWN, "flows"] and len(parts) > 3:
        return parts[3]
    return None


def _is_about_plugins(method: str, path: str) -> bool:
    """Plugins are the same for all flows, and to validate a config changes nothing."""
    is_validation = method == "PUT" and path.endswith("/config/validate")
    return path.startswith("/connector-plugins") and (method in _READING or is_validation)


def _is_new_connector(method: str, path: str, flow_of_connector: Callable[[str], str | None]) -> bool:
    """A request about a connector that does not exist: nothing is answered but 404, or it is created."""
    parts = path.split("/")[1:] or [""]
    is_put = (method, len(parts), parts[-1]) == ("PUT", 3, "config")
    is_connector = parts[0] == "connectors" and len(parts) > 1 and flow_of_connector(parts[1]) is None
    return is_connector and (method in _READING or is_put)
