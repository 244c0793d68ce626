"""What one logger has logged. Other libraries, and threads of earlier tests, may log at any time."""

import logging

import pytest


def records_of(caplog: pytest.LogCaptureFixture, logger: str, level: int = logging.INFO) -> list[logging.LogRecord]:
    """Those of a logger and the loggers below it, from this level on."""
    return [
        record
        for record in caplog.records
        if record.levelno >= level and (record.name == logger or record.name.startswith(f"{logger}."))
    ]


def lines_of(caplog: pytest.LogCaptureFixture, logger: str, level: int = logging.INFO) -> list[tuple[str, str]]:
    """Levels and messages."""
    return [(record.levelname, record.getMessage()) for record in records_of(caplog, logger, level)]
