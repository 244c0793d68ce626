"""`make audit` does not call packages clean that nobody has checked."""

import runpy
from pathlib import Path
from typing import Any

import pytest

VERDICT = runpy.run_path(str(Path(__file__).parents[2] / "deploy" / "audit.py"))["verdict"]
CLEAN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited: b (2)"}
BAD = {"name": "c", "version": "3", "vulns": [{"id": "PYSEC-1", "fix_versions": ["4", "5"]}]}


@pytest.mark.parametrize(
    ("packages", "status", "last"),
    [
        ([CLEAN], 0, "no known vulnerability in the 1 packages that were checked"),
        ([CLEAN, SKIPPED], 2, "no known vulnerability in the 1 packages that were checked"),
        ([], 2, "no known vulnerability in the 0 packages that were checked"),
        ([CLEAN, BAD], 1, "c 3: PYSEC-1, fixed in 4, 5"),
        ([SKIPPED, BAD], 1, f"for example: {SKIPPED['skip_reason']}. Run it where the package index can be reached"),
    ],
)
def test_the_exit_status_says_what_is_known(packages: list[Any], status: int, last: str) -> None:
    lines, exit_status = VERDICT({"dependencies": packages})
    assert exit_status == status
    assert lines[-1].endswith(last)
