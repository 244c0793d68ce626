"""JSON and YAML as one kind of tree with line numbers. What the fields mean is decided elsewhere.

Numbers, true and false are kept as they are written: settings are texts, and their kinds check them. The text of a
field that looks like a secret's is a `Secret`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from heliograph.config.declare.secrets import hide
from heliograph.config.messages import ConfigError
from heliograph.config.read.templates import refuse_template
from heliograph.model.secret import Secret

Node: TypeAlias = "Table | tuple[Node, ...] | str | Secret | None"


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
        return next((field for field in reversed(self.fields) if field.name == name and field.value is not None), None)

    def text(self, name: str) -> str:
        """The text of a field, '' if it has none."""
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
        refuse_template(text, file)
        raise ConfigError(f"{file}:{error.lineno}: this is not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: this is not JSON: {error}") from None
    return _from_json(parsed, _field_lines(text))


class _Pairs(list[tuple[str, Any]]):
    """An object's pairs in their order, repeated names included."""


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _field_lines(text: str) -> Iterator[int]:
    """The lines of all field names in the order of the file: texts with a colon after them."""
    line, last = 1, 0
    for quoted in re.finditer(r'"(?:[^"\\]|\\.)*"(\s*:)?', text):
        line += text.count("\n", last, quoted.start())
        last = quoted.start()
        if quoted[1]:
            yield line


def _from_json(parsed: Any, lines: Iterator[int]) -> Node:
    match parsed:
        case _Pairs():
            fields = []
            for name, value in parsed:
                line = next(lines)
                fields.append(Field(name, hide(name, _from_json(value, lines)), line))
            return Table(tuple(fields), fields[0].line if fields else 0)
        case list():
            return tuple(_from_json(item, lines) for item in parsed)
        case bool():
            return "true" if parsed else "false"
        case None:
            return None
        case _:
            return str(parsed)


def yaml_trees(text: str, file: str) -> tuple[Node, ...]:
    """All documents of a YAML file. Nodes are only composed, never constructed as Python objects."""
    import yaml  # slow to import, and only needed for YAML files

    try:
        return tuple(_from_yaml(node, file) for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node)
    except ConfigError:
        refuse_template(text, file)
        raise
    except yaml.MarkedYAMLError as error:
        refuse_template(text, file)
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ConfigError(f"{where}: this is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{file}: this is not YAML: {' '.join(str(error).split())}") from None


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
                # Fields of this mapping win over merged ones, so those come first.
                fields[:0] = [field for table in tables if isinstance(table, Table) for field in table.fields]
                continue
            fields.append(Field(name.value, hide(name.value, _from_yaml(value, file)), name.start_mark.line + 1))
        return Table(tuple(fields), line)
    if node.id == "sequence":
        return tuple(_from_yaml(item, file) for item in node.value)
    return None if node.tag.endswith(":null") else str(node.value)
