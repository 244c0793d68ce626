"""Writes `docs/configuration.md` from the declarations: `python -m heliograph.config.show.reference >
docs/configuration.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from heliograph.config.declare.catalogue import GROUPS, SETTINGS
from heliograph.config.declare.locations import WHERES
from heliograph.config.declare.setting import Role, Scope, Setting, SettingGroup, SettingLocation

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

The format is Java's: comments need lines of their own, a backslash is written twice, a blank ends a key (`A->B`, not
`A -> B`). Lists are split at commas, so no regular expression in a list can hold one; expressions must match a whole
name. A key that is set twice counts as it stands last. Names that are no setting are warned about, with the nearest
name that is one.

"Acted on" says whether this version does what the setting asks for. Other settings of MM2 are accepted, and each one
that a file sets is mentioned when the file is read.

## Where a setting may stand

`A->B` is a flow, `A` its source, `B` its target, `C` any cluster, `x` the setting. The first place that has a value
wins. A setting with several of these names, such as "consumer, admin", may stand at the places of each.
"""


def page() -> str:
    return "\n".join((_INTRODUCTION, *_places(), *(line for group in GROUPS for line in _table(group))))


def _places() -> Iterator[str]:
    yield "| named | places, highest first | MM2 also knows, without effect on records |"
    yield "| --- | --- | --- |"
    used = {setting.where for setting in SETTINGS}
    labels = {where.label for where in used}
    for where in WHERES:
        parts = where.label.split(", ")
        if where in used and (len(parts) == 1 or not labels.issuperset(parts)):
            yield f"| {where.label} | {_spelt(where.read)} | {_spelt(where.also)} |"
    yield ""


def _spelt(places: tuple[SettingLocation, ...]) -> str:
    return ", ".join(f"`{_key(place)}`" for place in places)


def _key(place: SettingLocation) -> str:
    return place.key("x", "C", "C") if (place.scope, place.role) == (Scope.CLUSTER, Role.EITHER) else place.key("x")


def _table(group: SettingGroup) -> Iterator[str]:
    yield f"## {group.title}\n"
    yield f"{group.about}\n"
    yield "| setting | type | default | where | what it does | acted on |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for setting in group.settings:
        yield _row(setting)
    yield ""


def _row(setting: Setting[object]) -> str:
    about = setting.about + "".join(f" Old name: `{name}`." for name in setting.old_names)
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
