"""The forms in which Heliograph runs: with Spark inside its own processes, or on a standalone Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from fault_runs.spark_processes import StandaloneSpark
from heliograph.sandbox import Sandbox

LOCAL, STANDALONE = "local", "standalone"
# A deployment of several drivers is one more: its `heliograph run` processes are further `Supervised` of a Scene.
FORMS = (LOCAL, STANDALONE)


@dataclass(frozen=True)
class Form:
    """Arguments of `heliograph run`, and the mark of the processes that leases run in, if those are not its own."""

    arguments: Sequence[str] = ()
    executors: str = ""
    spark: StandaloneSpark | None = None


@contextmanager
def started_form(name: str, sandbox: Sandbox, environment: Mapping[str, str]) -> Iterator[Form]:
    if name == LOCAL:
        yield Form()
        return
    with closing(StandaloneSpark(sandbox.folder / "spark", environment)) as spark:
        memory = ["--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=4"]
        yield Form(["--master", spark.url, *memory], spark.mark, spark)
