"""Files and values that are templates: something must be filled in before they can be used.

Java reads no variables but `${provider:path:key}`. What else looks like one was to be replaced by a script, by Ansible
or Helm, or by hand.
"""

import re

from heliograph.config.messages import ConfigError

# `${NAME}` and `$NAME`, `{{ name }}`, `<name>`, `{NAME}`, `%NAME%`, `@NAME@`, `:NAME:`.
_PLACEHOLDER = re.compile(
    r"\{\{.*?\}\}|\$\{(\w+)\}|\$(\w+)|<[A-Za-z][\w .-]*>|\{[A-Za-z][\w .-]*\}|%\w+%|@\w+@|(?<![\w.]):[A-Z_]{3,}:"
)
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")


def hint(text: str, reason: str) -> str:
    """Why a value is refused: `reason`, unless it is that something is to be filled in, or the file's format."""
    if (placeholder := _PLACEHOLDER.search(text)) is not None:
        has = "is" if placeholder[0] == text.strip() else f"has {placeholder[0]},"
        if placeholder[0].startswith("{{"):
            return f"{has} a variable of a template: render the template first"
        name = placeholder[1] or placeholder[2]
        by_reference = f", or '${{env:{name}}}' and 'config.providers = env'" if name else ""
        return f"{has} a placeholder that nothing replaces: write the value itself{by_reference}"
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        return f"{reason} (the quotes are part of the value: write it without)"
    return f"{reason} (a comment needs a line of its own)" if "#" in text else reason


def refuse_template(text: str, file: str) -> None:
    """For a file that cannot be read: raises `ConfigError` if it is a template, of Ansible, Helm or Go."""
    for number, line in enumerate(text.splitlines(), 1):
        if (found := _TEMPLATE.search(line)) is not None:
            raise ConfigError(
                f"{file}:{number}: this is a template, with '{found[0][:2]}': render it first, for example with "
                "`helm template` or by Ansible"
            ) from None
