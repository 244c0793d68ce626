"""Policies and filters as a user might write them, named in files by their path `config.own_classes.…`."""

from __future__ import annotations

import threading

from heliograph.model.policy import DefaultReplicationPolicy


class Shouting(DefaultReplicationPolicy):
    """Takes no argument."""

    def __init__(self) -> None:
        super().__init__("_")

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}_{topic}".upper()


class WithSeparator(DefaultReplicationPolicy):
    def __init__(self, *, separator: str, source_alias: str) -> None:
        super().__init__(f"{separator}{source_alias}{separator}")


class HalfAPolicy:
    def remote_topic(self, source_alias: str, topic: str) -> str:
        return topic


class WantsMore(DefaultReplicationPolicy):
    def __init__(self, moon: str) -> None:
        super().__init__(moon)


class FailsToBeMade(DefaultReplicationPolicy):
    def __init__(self) -> None:
        raise RuntimeError("no moon tonight")


class Short:
    """Names of at most so many letters."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.letters = int(settings.get("short.letters", "3"))

    def matches(self, name: str) -> bool:
        return len(name) <= self.letters


class Even:
    def matches(self, name: str) -> bool:
        return len(name) % 2 == 0


class Locked:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def matches(self, name: str) -> bool:
        return self.lock.locked()


NOT_A_CLASS = 3
