"""Files with secrets, which only their owner can read."""

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Writes a file, or replaces it in one step: who reads it meanwhile sees the old content or the new one."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(content)
    os.replace(unfinished, path)
