"""The result of a run, as a table and as a report in Markdown."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fault_runs.comparing import NAMES, Findings

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    seed: int
    minutes: float
    form: str
    broken: str
    began: datetime
    counts: Mapping[str, int]
    worst: Mapping[str, float]
    starts: int
    findings: Findings
    offsets_checked: int
    problems: Sequence[str]

    @property
    def is_clean(self) -> bool:
        return self.findings.is_clean and not self.problems

    def table(self) -> str:
        rows = [("fault", "count", "worst pause"), *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, "", self._sums(), *(f"NOT WELL: {problem}" for problem in self.problems)])

    def report(self) -> str:
        lines = [
            f"## Seed {self.seed}, {self.minutes:.1f} minutes, {self.form}"
            + (f", broken: {self.broken}" if self.broken else ""),
            "",
            f"{self.began:%Y-%m-%d %H:%M} UTC, commit {_commit()}. `heliograph run` was started {self.starts} times.",
            "",
            "| fault | count | worst pause |",
            "| --- | --- | --- |",
            *(f"| {' | '.join(row)} |" for row in self._rows()),
            "",
            self._sums(),
            *(["", *(f"- {problem}" for problem in self.problems)] if self.problems else []),
            "",
        ]
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, str, str]]:
        names = [*self.counts, *(name for name in self.worst if name not in self.counts)]
        return [(name, str(self.counts.get(name, "")), f"{self.worst.get(name, 0.0):.1f} s") for name in names]

    def _sums(self) -> str:
        sums = ", ".join(f"{name} {getattr(self.findings, name)}" for name in NAMES if name != "checked")
        return f"records checked {self.findings.checked}, {sums}; group offsets checked {self.offsets_checked}"


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=_HERE, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"
