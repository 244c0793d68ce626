"""Faults of a standalone Spark's own processes."""

import random

from fault_runs.scene import Applied, Fault, Scene
from fault_runs.spark_processes import MASTER


def _kill_worker(scene: Scene, rng: random.Random) -> Applied:
    spark = scene.spark
    assert spark is not None
    name = rng.choice([name for name in spark.names if name != MASTER])
    spark.kill(name)
    return Applied(name, lambda: spark.start(name))


def _kill_master(scene: Scene, _rng: random.Random) -> Applied:
    spark = scene.spark
    assert spark is not None
    spark.kill(MASTER)
    return Applied(spark.url, lambda: spark.start(MASTER))


def spark_faults() -> list[Fault]:
    return [
        Fault("kill-spark-worker", "SIGKILL of one of Spark's workers; it is started again", _kill_worker, (2, 10)),
        Fault("kill-spark-master", "SIGKILL of Spark's master; it is started again", _kill_master, (2, 10)),
    ]
