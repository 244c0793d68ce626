"""Which tests run in one process, and in which order, when several run side by side (`make test`)."""

from pathlib import Path

from xdist.scheduler import LoadFileScheduling

# Files that share clusters or a flow that runs for all of them: another process would have to start these again.
_TOGETHER = {
    "tests/faults/": (
        "test_brokers.py",
        "test_foreign_writers.py",
        "test_moving_leaders.py",
        "test_nearest_replica.py",
        "test_recreated_topics.py",
        "test_unclean_elections.py",
    ),
    "tests/monitoring/": (
        "test_logs_and_events.py",
        "test_metric_names.py",
        "test_metrics.py",
        "test_rules_and_dashboards.py",
        "test_troubleshooting.py",
    ),
}
_GROUPS = {folder + file: folder for folder, files in _TOGETHER.items() for file in files}
# The longest first: the processes then end at about the same time.
_LONG = ("faults", "running", "monitoring", "rest", "sandbox", "copying", "control", "service")


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """One process gets a whole file, or all files of a group."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return _GROUPS.get(file, file)


def rank(path: Path) -> int:
    """Tests with a lower one run earlier."""
    return _LONG.index(path.parent.name) if path.parent.name in _LONG else len(_LONG)
