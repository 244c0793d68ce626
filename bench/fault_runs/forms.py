"""The forms in which Heliograph runs: with Spark inside its own processes, or on a standalone Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from fault_runs.spark_processes import StandaloneSpark
from heliograph.sandbox import Sandbox
from heliograph.sandbox.ports import HOST

LOCAL, STANDALONE = "local", "standalone"
# A deployment of several drivers is one more: its `heliograph run` processes are further `Supervised` of a Scene.
FORMS = (LOCAL, STANDALONE)
# An executor on each of the two workers; as much is left for a second deployment.
_SETTINGS = (
    "spark.executor.memory=384m",
    "spark.executor.cores=2",
    "spark.cores.max=4",
    f"spark.driver.host={HOST}",
    f"spark.driver.bindAddress={HOST}",
)


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
        settings = [argument for setting in _SETTINGS for argument in ("--conf", setting)]
        yield Form(["--master", spark.url, *settings], spark.mark, spark)
