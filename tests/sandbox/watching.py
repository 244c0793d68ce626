"""Whether a process runs."""

import psutil


def is_running(pid: int) -> bool:
    # A zombie has ended; who collects it, and when, depends on the machine's first process.
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
