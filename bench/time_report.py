"""The section of the report on where the time goes."""

from collections.abc import Iterable, Sequence

from results import Profile, Results
from tables import table
from time_kinds import Kind, Owner

_INTRO = """\
One more round of each workload, in which `perf` samples all cores from the first record in the mirror to the last:
about a thousand times a second on each core, without call stacks. Its numbers are in no other table. The fewer samples,
the less a share of a few percent says."""

_WHOSE = """\
Whose time it is: percent of all cores, and in brackets percent of what was not idle. "Copier" is the lease of
Heliograph, or the whole of franz-go; "driver and Spark" is the rest of Heliograph; "others" are the benchmark and
everything else on the machine."""

_COPIER = "What the copier does, in percent of its own time. A joining lease runs code that numba has compiled."

_BROKERS = """\
What the brokers do, in percent of each broker's own time: source / target. "Java's routines" are the JVM's own in
machine code: checksums, copies of arrays, encryption. "Kernel: memory" are pages that are given out, the page cache's
among them; "kernel: others" is mostly waking up and waiting."""

# Columns of "whose time it is", and the owners that each of them adds up.
_COLUMNS: dict[str, tuple[Owner, ...]] = {
    "source broker": (Owner.SOURCE,),
    "target broker": (Owner.TARGET,),
    "copier": (Owner.MIRROR,),
    "driver and Spark": (Owner.DRIVER, Owner.SPARK),
    "others": (Owner.BENCHMARK, Owner.OTHERS),
    "idle": (Owner.IDLE,),
}
_SMALLEST_COLUMN = 0.01  # kinds that never reach this share count as others


def text(results: Results) -> str:
    """Three tables with a row for each profile; nothing without profiles."""
    profiles = [profile for profile in results.profiles if not profile.failure]
    if not profiles:
        return ""
    titles = [_title(results, profile) for profile in profiles]
    whose = [[title, *_owner_cells(profile)] for title, profile in zip(titles, profiles, strict=True)]
    return "\n\n".join(
        [
            "## Where the time goes",
            _INTRO,
            _WHOSE,
            table(["", *_COLUMNS, "samples"], whose),
            _COPIER,
            _kinds(titles, profiles, [Owner.MIRROR]),
            _BROKERS,
            _kinds(titles, profiles, [Owner.SOURCE, Owner.TARGET]),
        ]
    )


def _title(results: Results, profile: Profile) -> str:
    names = {source.workload: source.name for source in results.sources}
    return f"{profile.workload}. {names.get(profile.workload, '')}, {results.titles[profile.tool]}"


def _owner_cells(profile: Profile) -> list[str]:
    busy = profile.samples - profile.owners.get(Owner.IDLE, 0)
    cells = []
    for owners in _COLUMNS.values():
        count = sum(profile.owners.get(owner, 0) for owner in owners)
        of_busy = f" ({_percent(count, busy)})" if Owner.IDLE not in owners else ""
        cells.append(f"{_percent(count, profile.samples)}{of_busy}")
    return [*cells, f"{profile.samples:,}"]


def _kinds(titles: Sequence[str], profiles: Sequence[Profile], owners: Sequence[Owner]) -> str:
    """A row for each profile, a column for each kind that is worth one; shares of several owners in one cell."""
    columns = [kind for kind in Kind if kind is not Kind.OTHERS and _is_worth_a_column(kind, profiles, owners)]
    rows = []
    for title, profile in zip(titles, profiles, strict=True):
        named = [[_count(profile, owner, [kind]) for owner in owners] for kind in columns]
        totals = [_count(profile, owner, Kind) for owner in owners]
        rest = [total - sum(counts) for total, *counts in zip(totals, *named, strict=True)]
        rows.append([title, *(" / ".join(map(_percent, counts, totals)) for counts in (*named, rest))])
    return table(["", *columns, Kind.OTHERS], rows)


def _is_worth_a_column(kind: Kind, profiles: Sequence[Profile], owners: Sequence[Owner]) -> bool:
    return any(
        _count(profile, owner, [kind]) > _SMALLEST_COLUMN * _count(profile, owner, Kind)
        for profile in profiles
        for owner in owners
    )


def _count(profile: Profile, owner: Owner, kinds: Iterable[Kind]) -> int:
    counts = profile.kinds.get(owner, {})
    return sum(counts.get(kind, 0) for kind in kinds)


def _percent(count: int, total: int) -> str:
    return f"{count / total * 100:.0f}" if total else "0"
