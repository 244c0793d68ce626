"""The page `docs/configuration.md` is written from the declarations and checked in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from heliograph.config.declare.catalogue import settings
from heliograph.config.show.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_in_the_tree_is_the_one_the_declarations_give() -> None:
    assert PAGE.read_text() == page(), "run `make docs`"


def test_the_module_writes_the_page() -> None:
    written = subprocess.run(
        [sys.executable, "-m", "heliograph.config.show.reference"], capture_output=True, check=True, encoding="utf-8"
    )
    assert written.stdout == page()
    assert written.stderr == ""


def test_every_setting_is_on_the_page() -> None:
    text = page()
    for setting in settings():
        assert f"| `{setting.name}` |" in text
