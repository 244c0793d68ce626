"""A text that must not be shown: a password, a key, a token."""

HIDDEN = "[hidden]"


class Secret:
    """Shows nothing as repr, str, format and in a traceback's locals; JSON refuses it. Pickling keeps the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, form: str) -> str:
        return format(HIDDEN, form)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))
