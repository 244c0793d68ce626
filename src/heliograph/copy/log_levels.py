"""The levels of Heliograph's loggers: the driver's are used in leases, too."""

import logging

_OURS = "heliograph"


def levels() -> dict[str, int]:
    """The levels that were set, by logger name."""
    loggers = list(logging.Logger.manager.loggerDict.items())  # a copy: other threads may add loggers
    return {
        name: logger.level
        for name, logger in loggers
        if isinstance(logger, logging.Logger) and logger.level and (name == _OURS or name.startswith(f"{_OURS}."))
    }


def use_levels(wanted: dict[str, int]) -> None:
    """Set these levels, and reset all others."""
    for name in levels().keys() | wanted.keys():
        logging.getLogger(name).setLevel(wanted.get(name, logging.NOTSET))
