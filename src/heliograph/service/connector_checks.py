"""Checks the config of a connector before it is accepted, with Connect's messages."""

from collections.abc import Callable, Mapping

from heliograph.config import ConfigError
from heliograph.config.resolve.posted import part_of, with_secrets
from heliograph.config.show.plugin_definitions import problems


class Invalid(Exception):
    """A request that cannot be fulfilled; the message is for its sender."""


def invalid(errors: list[str]) -> Invalid:
    lines = "\n".join(errors)
    return Invalid(
        f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{lines}\nYou can also "
        "find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
    )


def checked_config(
    name: str, given: Mapping[str, str], before: Mapping[str, str], build: Callable[[Mapping[str, str]], object]
) -> dict[str, str]:
    """The whole config of a connector that had the config `before`. `build` makes its flow, and raises ConfigError if
    it cannot run together with the others. Raises Invalid."""
    given_name = given.get("name", name)
    if given_name != name:
        raise Invalid(f"Connector name configuration ({given_name}) doesn't match connector name in the URL ({name})")
    try:
        config = {**with_secrets(given, before), "name": name}
    except ConfigError as error:
        raise invalid(list(error.errors)) from None
    part = part_of(config)
    if not config.get("connector.class", "").strip():
        raise Invalid(f"Connector config {{name={name}}} contains no connector type")
    if part is None:
        raise Invalid(
            "Failed to find any class that implements Connector and which name matches "
            f"{config['connector.class']}, available connectors are MirrorMaker 2's: MirrorSourceConnector, "
            "MirrorCheckpointConnector, MirrorHeartbeatConnector"
        )
    if errors := [text for texts in problems(part, config).values() for text in texts]:
        raise invalid(errors)
    if "/" in name:
        raise invalid([f"Invalid value {name} for configuration name: it has a slash, and no URL could name it"])
    try:
        build(config)
    except ConfigError as error:
        raise invalid(list(error.errors)) from None
    return config
