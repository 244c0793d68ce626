"""JSON and YAML as one kind of tree that knows its lines. What the fields mean is of no concern here.

Numbers, true and false are kept as the text they were written as: settings are texts, and their kinds say what will do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from heliograph.config.messages import ConfigError

Node: TypeAlias = "Table | tuple[Node, ...] | str | None"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    value: Node
    line: int


@dataclass(frozen=True, slots=True)
class Table:
    fields: tuple[Field, ...]
    line: int = 0

    def get(self, name: str) -> Field | None:
        """The field of this name, the last one if there are several; one that is null counts as absent."""
        return next((one for one in reversed(self.fields) if one.name == name and one.value is not None), None)

    def text(self, name: str) -> str:
        """The text of a field, '' if there is none."""
        field = self.get(name)
        return field.value if field is not None and isinstance(field.value, str) else ""


def json_tree(text: str, file: str) -> Node:
    try:
        parsed = json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=_Pairs,
            parse_int=str,
            parse_float=str,
            parse_constant=_not_json,
        )
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}:{error.lineno}: this is no JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: this is no JSON: {error}") from None
    return _from_json(parsed, _names(text))


class _Pairs(list[tuple[str, Any]]):
    """An object's pairs in their order, repeated names included."""


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _names(text: str) -> Iterator[int]:
    """The lines of all names of fields in the order of the file: texts with a colon behind them."""
    line, last = 1, 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"(\s*:)?', text):
        line += text.count("\n", last, found.start())
        last = found.start()
        if found[1]:
            yield line


def _from_json(parsed: Any, lines: Iterator[int]) -> Node:
    match parsed:
        case _Pairs():
            fields = []
            for name, value in parsed:
                line = next(lines)
                fields.append(Field(name, _from_json(value, lines), line))
            return Table(tuple(fields), fields[0].line if fields else 0)
        case list():
            return tuple(_from_json(one, lines) for one in parsed)
        case bool():
            return "true" if parsed else "false"
        case None:
            return None
        case _:
            return str(parsed)


def yaml_trees(text: str, file: str) -> tuple[Node, ...]:
    """All documents of a YAML file. Nodes are only composed, never made into Python objects of any class."""
    import yaml  # here, so that nobody who has no YAML file waits for it

    try:
        return tuple(_from_yaml(node, file) for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ConfigError(f"{where}: this is no YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{file}: this is no YAML: {' '.join(str(error).split())}") from None


def _from_yaml(node: Any, file: str) -> Node:
    line = node.start_mark.line + 1
    if node.id == "mapping":
        fields: list[Field] = []
        for name, value in node.value:
            if name.id != "scalar":
                raise ConfigError(f"{file}:{name.start_mark.line + 1}: a name must be a text")
            if name.tag.endswith(":merge"):
                merged = _from_yaml(value, file)
                tables = merged if isinstance(merged, tuple) else (merged,)
                # What is merged in gives way to what stands here, so it comes first.
                fields[:0] = [field for table in tables if isinstance(table, Table) for field in table.fields]
                continue
            fields.append(Field(name.value, _from_yaml(value, file), name.start_mark.line + 1))
        return Table(tuple(fields), line)
    if node.id == "sequence":
        return tuple(_from_yaml(one, file) for one in node.value)
    return None if node.tag.endswith(":null") else str(node.value)
