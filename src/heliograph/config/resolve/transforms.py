"""Transforms are not applied: a flow that has some is refused, unless it is to be copied without them."""

from collections.abc import Iterable

from heliograph.config.declare.supported import IGNORE_TRANSFORMS, TRANSFORMS
from heliograph.config.messages import ConfigNotice
from heliograph.config.read.settings import Settings


def check(settings: Settings, source: str, target: str) -> list[ConfigNotice]:
    """About a flow that copies records: warns if its transforms are ignored. Raises `ConfigError` if they must not be:
    somebody may rely on them to mask or drop data."""
    entry = settings.find(TRANSFORMS, source, target)
    names = named(settings.get(TRANSFORMS, source, target))
    if entry is None or not names:
        return []
    switch = entry.spelt(entry.key.removesuffix(TRANSFORMS.name) + IGNORE_TRANSFORMS.name)
    if settings.get(IGNORE_TRANSFORMS, source, target):
        text = f"{entry.name}: '{names}' is not applied, and records are copied as they are: {switch} is true"
        return [settings.notice(entry, text)]
    raise settings.error(entry, refusal(names, switch))


def named(names: Iterable[str]) -> str:
    """The names of transforms; empty if there are none."""
    return ", ".join(name for name in names if name)


def refusal(names: str, switch: str = IGNORE_TRANSFORMS.name) -> str:
    """`switch` is where to write that transforms are to be ignored."""
    return (
        f"'{names}' cannot be applied: records would be copied with all that it masks or drops. Remove it, or set "
        f"{switch} = true to copy records as they are"
    )
