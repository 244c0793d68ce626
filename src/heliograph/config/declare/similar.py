"""Which known name somebody meant who wrote an unknown one.

Names are compared word by word: the words of a misspelt name are those of the known one, but for typing errors. Names
that only share many letters, such as `message.max.bytes` and `metadata.max.age.ms`, are different settings.
"""

import re
from collections.abc import Iterable

_SAME = {"millis": "ms", "milliseconds": "ms", "sec": "seconds", "secs": "seconds"}


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The known name with the same number of words, each of them equal or similar; in another order, each equal."""
    words = _words(name)
    same_length = [other for other in known if len(_words(other)) == len(words) and other != name]
    close = [other for other in same_length if all(map(_is_similar, words, _words(other)))]
    reordered = [other for other in same_length if sorted(_words(other)) == sorted(words)]
    return min(close or reordered, key=lambda other: _differences(words, _words(other)), default=None)


def incomplete(name: str, known: Iterable[str]) -> str | None:
    """The known name that has one word more, as in `sync.group.enabled` for `sync.group.offsets.enabled`."""
    words = _words(name)
    for other in known:
        others = _words(other)
        if len(words) < 2 or len(others) != len(words) + 1:
            continue
        for missing in range(len(others)):
            if all(map(_is_similar, words, others[:missing] + others[missing + 1 :])):
                return other
    return None


def _words(name: str) -> list[str]:
    return [_SAME.get(word, word) for word in re.split(r"[._-]", name.lower())]


def _differences(words: list[str], others: list[str]) -> int:
    return sum(word != other for word, other in zip(words, others, strict=True))


def _is_similar(word: str, other: str) -> bool:
    """Equal, the beginning of the other, or different by one typing error; by two in a long word."""
    shorter, longer = sorted((word, other), key=len)
    if word == other or (len(shorter) > 2 and longer.startswith(shorter)):
        return True
    # In a short word another letter makes another word.
    allowed = len(longer) - len(shorter) if len(longer) < 4 else 1 if len(longer) < 8 else 2
    return len(longer) - len(shorter) <= allowed and _typing_errors(word, other) <= allowed


def _typing_errors(word: str, other: str) -> int:
    """How many letters were left out, added, replaced, or exchanged with their neighbours."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for index, letter in enumerate(word, 1):
        before, last, row = row, before, [index]
        for at, expected in enumerate(other, 1):
            cost = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != expected))
            if index > 1 and at > 1 and letter == other[at - 2] and word[index - 2] == expected:
                cost = min(cost, last[at - 2] + 1)
            row.append(cost)
    return row[-1]
