"""What `docs/configuration-formats.md` shows is what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heliograph.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "configuration-formats.md").read_text()
FILES = re.findall(r"^`([\w.-]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^```console\n\$ heliograph ([^\n]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_has_a_file_of_every_format() -> None:
    assert [Path(name).suffix for name, _ in FILES] == [".properties", ".json", ".yaml"]
    assert len(COMMANDS) > 4


@pytest.mark.parametrize(("line", "printed"), COMMANDS)
def test_every_command_prints_what_the_page_says(
    line: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES:
        Path(name).write_text(text)
    assert CliRunner().invoke(app, line.split()).output == printed
