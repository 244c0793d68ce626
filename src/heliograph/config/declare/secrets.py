"""Values that must not be shown: passwords, keys, tokens, logins.

A value becomes a `Secret` when its file is read, and stays one until `reveal()` is called for its text.
"""

import re
from typing import TypeAlias, TypeVar

from heliograph.model.secret import Secret

T = TypeVar("T")

# Also `credentials` and `private.key`, but for the names of a client's id and of paths of files.
_SECRET_WORDS = re.compile(
    r"password|passwd|passphrase|secret(?!s\.(?:dir|refresh)\b)|(?<!heliograph\.rest\.)token(?!\.?endpoint)|jaas|"
    r"credential(?!s\.client\.id)|private(?!\.key\.file)|"
    r"api\.?key|access\.?key|keystore\.key|certificate\.chain|truststore\.certificates|notify\.webhook|(^|[._-])key$",
    re.IGNORECASE,
)
_PROVIDERS = "config.providers."
REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")
_JAAS_OPTION = re.compile(r'([\w.-]+)\s*=\s*(?:"([^"]*)"|\'([^\']*)\'|([^\s;"\'/]+))')
# The plainest form of a login, without comments and quoted names: any other may have a secret where it is not expected.
_JAAS_LOGIN = re.compile(rf"\s*[\w.$]+\s+(required|requisite|sufficient|optional)(\s+{_JAAS_OPTION.pattern})*\s*;?\s*")


def is_reference(secret: Secret) -> bool:
    """Whether the text only says where the secret is (`${env:NAME}`), so that it may be shown."""
    text = secret.reveal()
    rest = REFERENCE.sub("", text).strip()
    if not rest or rest == text.strip():
        return not rest
    # A JAAS login such as `... required username="me" password="${env:NAME}";`
    if _JAAS_LOGIN.fullmatch(text) is None:
        return False
    options = [(option[1], "".join(filter(None, option.groups()[1:]))) for option in _JAAS_OPTION.finditer(rest)]
    return bool(options) and not any(value for name, value in options if is_secret(name) or name.startswith("user_"))


Value: TypeAlias = str | Secret


def is_secret(name: str) -> bool:
    """By the words of its name, whatever is in front of it: a setting for a user's own class may have any name."""
    if name.startswith(_PROVIDERS):
        name = name.partition(".param.")[2]
    return _SECRET_WORDS.search(name) is not None


def hide(name: str, value: T) -> T | Secret:
    """The value of a setting: a text becomes a `Secret` if its name says so."""
    return Secret(value) if isinstance(value, str) and is_secret(name) else value


def is_literal_secret(value: Value) -> bool:
    return isinstance(value, Secret) and not is_reference(value)


def reveal(value: Value) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def shown(name: str, value: Value) -> str:
    """The text that may be shown to anybody."""
    return str(hide(name, value))
