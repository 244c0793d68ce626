"""Writes `docs/configuration.md` from the declarations: `python -m heliograph.config.show.reference >
docs/configuration.md`."""

import sys
from collections.abc import Iterator

from heliograph.config.declare.catalogue import SettingGroup, groups, settings
from heliograph.config.declare.locations import ALL, SettingLocation
from heliograph.config.declare.setting import Setting

_INTRODUCTION = """\
# Configuration

<!-- Written by `make docs` from the declarations in src/heliograph/config; change it there. -->

Heliograph reads the `mm2.properties` of MirrorMaker 2 (MM2). A file for two clusters that mirror each other:

```properties
clusters = A, B
A.bootstrap.servers = a1:9092, a2:9092
B.bootstrap.servers = b1:9092
A->B.enabled = true
B->A.enabled = true
B->A.topics = orders.*, customers
```

The format is Java's: comments need lines of their own, a backslash is written twice, keys must not contain spaces
(`A->B`, not `A -> B`). Lists are split at commas, so no regular expression in a list can contain one; expressions must
match a whole name. If a key is set twice, the last value wins. A warning names every unknown setting, with the most
similar name that is known.

"Supported" says whether the setting has an effect. Other settings of MM2, Kafka Connect and Kafka's clients are
accepted and ignored, with a note for each.

## Where a setting is written

`A->B` is a flow, `A` its source, `B` its target, `C` any cluster, `x` the setting. The first location that has a value
wins. A setting with several of these names, such as "consumer, admin", may be written at the locations of each.
"""


def page() -> str:
    return "\n".join((_INTRODUCTION, *_locations(), *(line for group in groups() for line in _table(group))))


def _locations() -> Iterator[str]:
    yield "| named | locations, highest first | MM2 also knows, without effect on records |"
    yield "| --- | --- | --- |"
    used = {setting.where for setting in settings()}
    labels = {where.label for where in used}
    for where in ALL:
        parts = where.label.split(", ")
        if where in used and (len(parts) == 1 or not labels.issuperset(parts)):
            yield f"| {where.label} | {_examples(where.read)} | {_examples(where.also)} |"
    yield ""


def _examples(locations: tuple[SettingLocation, ...]) -> str:
    return ", ".join(f"`{location.example('x')}`" for location in locations)


def _table(group: SettingGroup) -> Iterator[str]:
    yield f"## {group.title}\n"
    yield f"{group.about}\n"
    yield "| setting | type | default | where | what it does | supported |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for setting, sentence in group.settings:
        yield _row(setting, sentence)
    yield ""


def _row(setting: Setting[object], sentence: str) -> str:
    about = sentence + "".join(f" Old name: `{name}`." for name in setting.old_names)
    cells = (
        f"`{setting.name}`",
        setting.kind.label,
        _default(setting.default),
        setting.where.label,
        about,
        "yes" if setting.supported else f"no: {setting.ignored_because}" if setting.ignored_because else "not yet",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(default: str | None) -> str:
    if default is None:
        return "-"
    return f"`{default}`" if default else "empty"


if __name__ == "__main__":
    sys.stdout.write(page())
