"""The levels of Heliograph's loggers, as the driver has them and leases follow."""

import logging

_OURS = "heliograph"


def levels() -> dict[str, int]:
    """Those that were set, by name; the others go by the nearest above them."""
    found = list(logging.Logger.manager.loggerDict.items())  # others may come from threads meanwhile
    return {
        name: one.level
        for name, one in found
        if isinstance(one, logging.Logger) and one.level and (name == _OURS or name.startswith(f"{_OURS}."))
    }


def use_levels(wanted: dict[str, int]) -> None:
    """These, and no others."""
    for name in levels().keys() | wanted.keys():
        logging.getLogger(name).setLevel(wanted.get(name, logging.NOTSET))
