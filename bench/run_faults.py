"""Two clusters of three brokers, the real command, and faults in an order that a seed decides: nothing may be lost.

Writes numbered records to the source all the time (plain, each codec, transactions, compacted) and moves groups, while
the nemesis kills, freezes and cuts off processes and brokers, one fault at a time. Every record must arrive once, in
order and unaltered, and every translated group offset must be exact. Otherwise the status is 1.

Example: python bench/run_faults.py --seed 7 --minutes 5 --faults kill-driver,lose-answers --report report.md
"""

import argparse
import contextlib
import itertools
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fault_runs import broken
from fault_runs.broken.sitecustomize import BROKEN
from fault_runs.broker_faults import broker_faults
from fault_runs.episodes import PREFIX
from fault_runs.forms import FORMS, LOCAL, STANDALONE, started_form
from fault_runs.nemesis import Nemesis
from fault_runs.network_faults import network_faults
from fault_runs.outcome import Outcome
from fault_runs.process_faults import executor_faults, process_faults
from fault_runs.scene import Fault, Scene
from fault_runs.sides import Side, started
from fault_runs.standalone import spark_faults
from fault_runs.supervised import Supervised
from fault_runs.topic_faults import topic_faults
from fault_runs.verifier import Verifier
from fault_runs.workload import WORKLOADS

_LEASE_SECONDS = 6.0
_CHECKPOINT_EVERY = 120.0
_BROKEN = Path(broken.__path__[0])
_TARGET_SETTINGS = {"producer.id.expiration.check.interval.ms": "1000"}


def all_faults(form: str) -> dict[str, Fault]:
    faults = [*process_faults(_LEASE_SECONDS), *broker_faults(), *network_faults(), *topic_faults()]
    if form == STANDALONE:
        faults += [*executor_faults(_LEASE_SECONDS), *spark_faults()]
    return {fault.name: fault for fault in faults}


def properties(source: Side, target: Side) -> str:
    """Short intervals and timeouts: more faults in the same time."""
    topics = ",".join([*(workload.topic for workload in WORKLOADS), f"{PREFIX}.*"])
    return f"""\
clusters = S, T
S.bootstrap.servers = {source.proxied}
T.bootstrap.servers = {target.proxied}
S->T.enabled = true
S->T.topics = {topics}
S->T.groups = faults-.*
tasks.max = 2
replication.factor = 3
checkpoints.topic.replication.factor = 3
heartbeats.topic.replication.factor = 3
offset-syncs.topic.replication.factor = 3
refresh.topics.interval.seconds = 2
refresh.groups.interval.seconds = 2
emit.checkpoints.interval.seconds = 1
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 1
request.timeout.ms = 8000
metadata.max.age.ms = 10000
heliograph.on.recreated.topic = continue
heliograph.lease.seconds = {_LEASE_SECONDS:g}
"""


def _say(text: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")
    sys.stdout.flush()


def run(options: argparse.Namespace, faults: Sequence[Fault]) -> Outcome:
    began = datetime.now(UTC)
    started_at = time.monotonic()
    environment = {"FAULT_RUN_BROKEN": options.broken, "PYTHONPATH": _python_path()} if options.broken else {}
    with (
        started(_TARGET_SETTINGS) as (sandbox, source, target),
        started_form(options.form, sandbox, environment) as form,
    ):
        _say("both clusters are up")
        file = sandbox.folder / "faults.properties"
        file.write_text(properties(source, target))
        log = sandbox.folder / "heliograph.log"
        numbers = itertools.count(1)

        def second_logs() -> Path:
            return sandbox.folder / f"second-{next(numbers)}.log"

        arguments = [str(file), "--no-rest", *form.arguments]
        command = Supervised(arguments, log, environment, form.executors)
        scene = Scene(
            source,
            target,
            command,
            lambda: Supervised(arguments, second_logs(), environment, form.executors),
            options.patience,
            form.spark,
        )
        verifier = Verifier(source, target, WORKLOADS, options.seed)
        nemesis = Nemesis(faults, options.seed, options.patience, _say)
        left: list[str] = []
        try:
            verifier.create_topics()
            command.start()
            verifier.start()
            _say("all mirrors exist")
            problems = _strike(options, nemesis, scene, verifier, started_at)
        finally:
            verifier.end()
            left = command.stop()
            if options.log:
                shutil.copyfile(log, options.log)
                for number, second in enumerate(sorted(sandbox.folder.glob("second-*.log")), 1):
                    shutil.copyfile(second, options.log.with_suffix(f".{number}.log"))
        if "Traceback" in log.read_text(errors="replace"):
            problems.append("Heliograph's log has a stack trace; --log FILE keeps the log")
        problems += [f"left behind after SIGTERM: {name}" for name in left]
        return Outcome(
            options.seed,
            (time.monotonic() - started_at) / 60,
            options.form,
            options.broken,
            began,
            nemesis.counts,
            verifier.pauses.worst,
            command.starts,
            verifier.findings + nemesis.findings,
            verifier.groups.checked,
            [*problems, *verifier.groups.mistranslated, *verifier.problems],
        )


def _strike(
    options: argparse.Namespace, nemesis: Nemesis, scene: Scene, verifier: Verifier, started_at: float
) -> list[str]:
    """One fault after the other until the time is over; checkpoints in between and at the end."""
    problems: list[str] = []
    if not verifier.recovers(240.0):
        return ["Heliograph does not copy, though there was no fault yet"]
    until = started_at + options.minutes * 60
    checkpoint_at = time.monotonic() + _CHECKPOINT_EVERY
    faults_left = options.count if options.count else sys.maxsize
    while faults_left and not problems and verifier.findings.is_clean and (options.count or time.monotonic() < until):
        faults_left -= 1
        problems += nemesis.strike(nemesis.next_fault(), scene, verifier)
        if time.monotonic() > checkpoint_at:
            _say(f"checkpoint: {verifier.checkpoint('checkpoint', options.patience)}")
            checkpoint_at = time.monotonic() + _CHECKPOINT_EVERY
    _say(f"end: {verifier.checkpoint('end', 10.0 if problems else options.patience)}")
    return problems


def _python_path() -> str:
    return os.pathsep.join([str(_BROKEN), *filter(None, [os.environ.get("PYTHONPATH")])])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0, help="the start of the clusters included")
    parser.add_argument("--form", choices=FORMS, default=LOCAL)
    parser.add_argument("--faults", default="", metavar="NAME,NAME", help="only these; --list names all")
    parser.add_argument("--count", type=int, default=0, help="so many faults, however long they take")
    parser.add_argument(
        "--patience", type=float, default=180.0, metavar="SECONDS", help="how long all may take to arrive"
    )
    parser.add_argument("--broken", default="", choices=["", *BROKEN], help="run a build that is broken on purpose")
    parser.add_argument("--report", type=Path, metavar="FILE", help="add the result to this file, as Markdown")
    parser.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="copy the log of `heliograph run` here, and those of second deployments beside it",
    )
    parser.add_argument("--list", action="store_true", help="name all faults")
    options = parser.parse_args(arguments)
    known = all_faults(options.form)
    if options.list:
        sys.stdout.write("".join(f"{fault.name}: {fault.text}\n" for fault in known.values()))
        return
    names = [name for name in options.faults.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no fault {', '.join(unknown)}; --list names all")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.suppress(KeyboardInterrupt):
        outcome = run(options, [known[name] for name in names] or list(known.values()))
        sys.stdout.write(outcome.table() + "\n")
        if options.report:
            with options.report.open("a") as file:
                file.write(outcome.report() + "\n")
        sys.exit(0 if outcome.is_clean else 1)
    sys.exit(130)


if __name__ == "__main__":
    main()
