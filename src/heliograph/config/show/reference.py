"""Writes `docs/configuration.md` from the declarations: `python -m heliograph.config.show.reference >
docs/configuration.md`."""

import sys
from collections.abc import Iterator

from heliograph.config.declare.catalogue import SettingGroup, groups, introduction, settings
from heliograph.config.declare.locations import ALL, SettingLocation
from heliograph.config.declare.setting import Setting


def page() -> str:
    return "\n".join((introduction(), *_locations(), *(line for group in groups() for line in _table(group))))


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
