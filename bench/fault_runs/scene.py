"""What faults act on, and what a fault is."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from fault_runs.comparing import Findings
from fault_runs.sides import Side
from fault_runs.spark_processes import StandaloneSpark
from fault_runs.supervised import Supervised

Undo = Callable[[], None]


@dataclass(frozen=True)
class Scene:
    """`second` makes one more deployment of the same file, which is not started yet. `spark` is the standalone one."""

    source: Side
    target: Side
    command: Supervised
    second: Callable[[], Supervised]
    patience: float  # in seconds, for everything that must arrive
    spark: StandaloneSpark | None = None

    def any_side(self, rng: random.Random) -> Side:
        return rng.choice((self.source, self.target))


@dataclass(frozen=True)
class Applied:
    """What a fault has done: to whom, how it is undone, and what is to be verified when all is copied again."""

    to: str
    undo: Undo = lambda: None
    verify: Callable[[], Findings] = Findings


class NotApplied(Exception):
    """There was nothing that the fault could be applied to; the reason."""


@dataclass(frozen=True)
class Fault:
    """`holds`: for how many seconds at least and at most it stays. `watched`: how many seconds the next one waits at
    least, as what a killed driver has started goes on copying until its leases end."""

    name: str
    text: str
    apply: Callable[[Scene, random.Random], Applied]
    holds: tuple[float, float] = (0.0, 0.0)
    watched: float = 1.0
