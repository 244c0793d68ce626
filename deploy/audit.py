"""`make audit`: known vulnerabilities of the locked packages (pip-audit), and a list of the packages (CycloneDX).

Exit statuses: 0 every package was checked and none has a known vulnerability; 1 there are vulnerabilities; 2 packages
could not be checked, because no database of vulnerabilities can be reached or none knows them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
SBOM = ROOT / "build" / "sbom.cdx.json"


def main(tools: Path) -> int:
    """`tools` is the directory with the commands."""
    SBOM.parent.mkdir(exist_ok=True)
    options = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--of", "JSON", "-o", str(SBOM)]
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}  # that the list has no graph of dependencies
    subprocess.run([tools / "cyclonedx-py", "requirements", str(LOCK), *options], check=True, env=quiet)
    _print(f"audit: {len(json.loads(SBOM.read_text())['components'])} packages are listed in {SBOM.relative_to(ROOT)}")
    done = subprocess.run(
        [tools / "pip-audit", "-r", str(LOCK), "--disable-pip", "--no-deps", "--progress-spinner", "off", "-f", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        lines, status = verdict(json.loads(done.stdout))
    except ValueError:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        lines, status = [f"audit: pip-audit failed, nothing is known about vulnerabilities: {reason}"], 2
    _print(*lines)
    return status


def verdict(report: dict[str, Any]) -> tuple[list[str], int]:
    """The lines to print, and the exit status, for the JSON that pip-audit prints. pip-audit itself exits with 0 if
    packages could not be checked."""
    packages = report["dependencies"]
    skipped = [package for package in packages if "skip_reason" in package]
    found = [(package, entry) for package in packages for entry in package.get("vulns", ())]
    lines = [
        f"audit: {package['name']} {package['version']}: {entry['id']}, fixed in "
        f"{', '.join(entry['fix_versions']) or 'no version'}"
        for package, entry in found
    ]
    if skipped:
        lines.append(
            f"audit: {len(skipped)} of {len(packages)} packages could not be checked, for example: "
            f"{skipped[0]['skip_reason']}. Run it where the package index can be reached"
        )
    if not found:
        lines.append(f"audit: no known vulnerability in the {len(packages) - len(skipped)} packages that were checked")
    return lines, 1 if found else 2 if skipped or not packages else 0


def _print(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
