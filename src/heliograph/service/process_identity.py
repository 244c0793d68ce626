"""Whether another process of this machine is dead: a member that was killed need not wait until its session ends."""

import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_STATE, _START_TIME = 0, 19  # fields of /proc/PID/stat after the name
_ENDED = ("Z", "X")
_PARTS = 4


def own_identity() -> str:
    """Machine, namespace of process ids, process id and start; empty where Linux's /proc is missing."""
    return _identity(os.getpid())


def is_dead(identity: str) -> bool:
    """Whether a process with this identity was on this machine and is no more. False where that cannot be known."""
    parts = identity.split("/")
    if len(parts) != _PARTS or parts[:2] != _place() or not parts[2].isdigit():
        return False
    return _identity(int(parts[2])) != identity


def _place() -> list[str]:
    try:
        return [_BOOT_ID.read_text().strip(), os.readlink(_PID_NAMESPACE)]
    except OSError:
        return []


def _identity(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    place = _place()
    return "" if not place or stat[_STATE] in _ENDED else "/".join([*place, str(pid), stat[_START_TIME]])
