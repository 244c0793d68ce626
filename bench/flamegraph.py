"""Where a lease's time goes: a flame graph of one workload while Heliograph copies it.

py-spy samples the process that runs the lease, with the frames of native libraries; the compiled loop of
`wire/kernels` and the kernel's copies count for the frame that calls them. `make flamegraph`; ARGS="--workload 9".
"""

import argparse
import asyncio
import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
from clusters import BROKER, Ends, client_of, started
from stage import Run, Stage, running
from tools import TOOLS
from workloads import WORKLOADS, write

from heliograph.sandbox.processes import Processes

_PATIENCE = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", type=int, default=1)
    parser.add_argument("--scale", type=float, default=4.0, help="times the usual number of records")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--py-spy", default="py-spy", metavar="PROGRAM")
    parser.add_argument("--output", type=Path, default=Path("docs/pictures/flamegraph.svg"))
    options = parser.parse_args()
    (workload,) = (workload for workload in WORKLOADS if workload.number == options.workload)
    with (
        started(workload.far, workload.tls) as (sandbox, pair),
        Processes(folder=sandbox.folder / "tools", remove=False) as processes,
    ):
        stage = Stage.of(pair, processes)
        asyncio.run(write(workload, pair.source, round(workload.records * options.scale)))
        for turn in ("warms brokers up", "is sampled"):
            with running(stage, TOOLS[0], turn.split()[0], workload, workload.topic) as run:
                asyncio.run(_until_it_copies(run, workload.partitions))
                if turn == "is sampled":
                    command = [options.py_spy, "record", "--native", "--pid", str(_lease(run)), "--rate", "500"]
                    command += ["--duration", f"{options.seconds:g}", "--output", str(options.output)]
                    subprocess.run([*command, "--format", "flamegraph"], check=True)
                else:
                    time.sleep(options.seconds)
    return 0


async def _until_it_copies(run: Run, partitions: int) -> None:
    began = time.monotonic()
    (mirror,) = run.mirrors
    async with client_of(mirror.cluster) as client:
        ends = Ends(await client.connection(BROKER), [mirror.topic], partitions)
        while not await ends.total():
            run.check()
            if time.monotonic() - began > _PATIENCE:
                raise SystemExit("nothing is copied")
            await asyncio.sleep(0.02)


def _lease(run: Run) -> int:
    """The worker that was started last by Spark's daemon."""
    workers = []
    for pid in run.tree.pids():
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            parent = process.parent()
            if parent is not None and "heliograph.engine.daemon_ahead" in parent.cmdline():
                workers.append((sum(process.cpu_times()[:2]), pid))
    return max(workers)[1]


if __name__ == "__main__":
    sys.exit(main())
