"""Connect's REST API for plugins: connector classes, their settings, and validation of a config."""

from typing import Any

from fastapi import APIRouter, Request

from heliograph import __version__
from heliograph.config.read.connector import CLASSES, class_name
from heliograph.config.resolve.posted import part_of
from heliograph.config.resolve.posted import shown as without_secrets
from heliograph.config.show.plugin_definitions import Definition, definitions, problems
from heliograph.rest.problems import Problem, body_of, json_body, texts_of
from heliograph.service.connectors import Connectors


def plugins_api(connectors: Connectors) -> APIRouter:
    router = APIRouter(prefix="/connector-plugins", tags=["Kafka Connect"])

    @router.get("")
    async def plugins() -> list[dict[str, str]]:
        classes = sorted(class_name(part) for part in CLASSES)
        return [{"class": plugin, "type": "source", "version": __version__} for plugin in classes]

    @router.get("/{plugin}/config")
    async def config(plugin: str) -> list[dict[str, Any]]:
        part = part_of({"connector.class": plugin})
        if part is None:
            raise Problem(404, f"Unknown plugin {plugin}.")
        return [_definition(number, definition) for number, definition in enumerate(definitions(part), 1)]

    @router.put("/{plugin}/config/validate", openapi_extra=json_body())
    async def validate(plugin: str, request: Request) -> dict[str, Any]:
        given = {key: value for key, value in texts_of(await body_of(request)).items() if value is not None}
        kind = given.get("connector.class", "").strip()
        part = part_of(given)
        if not kind:
            raise Problem(400, f"Connector config {without_secrets(given)} contains no connector type")
        if part is None:
            raise Problem(400, f"Failed to find any class that implements Connector and which name matches {kind}")
        if not _bare(kind).endswith(_bare(plugin)):
            raise Problem(400, f"Included connector type {kind} does not match request type {plugin}")
        shown = without_secrets(given)
        not_allowed = connectors.refusals(given.get("name", ""), given)
        # The class of a refused setting is not even imported.
        wrong = problems(part, {name: value for name, value in given.items() if name not in not_allowed})
        wrong |= {name: [f"{name}: {reason}"] for name, reason in not_allowed.items()}
        return {
            "name": kind,
            "error_count": sum(map(len, wrong.values())),
            "groups": list(dict.fromkeys(definition.group for definition in definitions(part))),
            "configs": [
                {
                    "definition": _definition(number, definition),
                    "value": {
                        "name": definition.name,
                        "value": shown.get(definition.name, definition.default),
                        "recommended_values": [],
                        "errors": wrong.get(definition.name, []),
                        "visible": True,
                    },
                }
                for number, definition in enumerate(definitions(part), 1)
            ],
        }

    return router


def _bare(name: str) -> str:
    return name.removesuffix("Connector")


def _definition(number: int, definition: Definition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "type": definition.type,
        "required": definition.required,
        "default_value": definition.default,
        "importance": definition.importance,
        "documentation": definition.about,
        "group": definition.group,
        "order_in_group": number,
        "width": "MEDIUM",
        "display_name": definition.name,
        "dependents": [],
    }
