"""The copier on franz-go (Go): built here when there is a Go compiler, and left out of a benchmark where there is none.

Its source is in `peers/franzgo`, the program in `.cache` next to this file. What Go downloads and compiles on the way
is with Heliograph's other downloads: another checkout builds in seconds.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from heliograph.sandbox.jars import cache_directory

_HERE = Path(__file__).parent
_SOURCE = _HERE / "peers" / "franzgo"
_CACHE = _HERE / ".cache"
_INSTALLED = "/usr/local/go/bin"  # where Go's own installation puts it, on the path or not
_BUILD_WITHIN = 600.0


class NotBuilt(Exception):
    """The copier cannot be built; the reason in one line."""


def compiler() -> str | None:
    """The path of `go`, or None."""
    return shutil.which("go") or shutil.which("go", path=_INSTALLED)


@functools.cache
def program() -> Path:
    """The built copier. Raises NotBuilt."""
    go = compiler()
    if go is None:
        raise NotBuilt("there is no Go compiler")
    built = _CACHE / "franzgo"
    _CACHE.mkdir(exist_ok=True)
    caches = cache_directory() / "go"
    environment = os.environ | {"GOCACHE": str(caches / "build"), "GOMODCACHE": str(caches / "modules")}
    # Go makes downloaded modules read-only unless told otherwise, and then they cannot simply be deleted.
    command = [go, "build", "-modcacherw", "-buildvcs=false", "-o", str(built), "."]
    try:
        done = subprocess.run(
            command, cwd=_SOURCE, env=environment, capture_output=True, text=True, timeout=_BUILD_WITHIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(f"go build: {error}") from error
    if done.returncode:
        raise NotBuilt(f"go build: {' / '.join(done.stderr.splitlines()[-2:])}")
    return built


def version() -> str:
    """Of franz-go and of the compiler that has built the copier."""
    required = re.search(r"github.com/twmb/franz-go (v\S+)", (_SOURCE / "go.mod").read_text())
    said = subprocess.run([str(compiler()), "env", "GOVERSION"], capture_output=True, text=True, check=False)
    return f"{required[1] if required else 'unknown'}, {said.stdout.strip()}"


def command(
    flows: Sequence[Sequence[str]], codec: str, committed: bool, batch_bytes: int, authorities: str | None = None
) -> list[str]:
    """Each flow is the address of the source, that of the target, the topic and its mirror, which has to exist.

    With a PEM file of `authorities` it connects over TLS.
    """
    options = ["-codec", codec, "-batch-bytes", str(batch_bytes), *(["-committed"] if committed else [])]
    options += ["-ca", authorities] if authorities else []
    return [str(program()), *options, *(",".join(flow) for flow in flows)]
