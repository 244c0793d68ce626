"""Chooses faults in an order that only the seed decides, applies and undoes them one at a time."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence

from fault_runs.comparing import Findings
from fault_runs.pauses import CALM
from fault_runs.scene import Fault, NotApplied, Scene
from fault_runs.verifier import Verifier


class Nemesis:
    """`counts` says how often each fault was applied, `findings` what was found of faults with a topic of their own."""

    def __init__(self, faults: Sequence[Fault], seed: int, patience: float, say: Callable[[str], None]) -> None:
        self.counts: Counter[str] = Counter()
        self.findings = Findings()
        self._faults = list(faults)
        self._rng = random.Random(f"faults/{seed}")
        self._patience = patience
        self._say = say
        self._round: list[Fault] = []

    def next_fault(self) -> Fault:
        """Each fault once, in random order; then again in another order."""
        if not self._round:
            self._round = self._rng.sample(self._faults, len(self._faults))
        return self._round.pop()

    def strike(self, fault: Fault, scene: Scene, verifier: Verifier) -> list[str]:
        """Applies and undoes a fault, and waits until all that was written meanwhile is copied. Returns problems."""
        # The fault's own numbers: how many it draws must not depend on what ran before.
        rng = random.Random(f"{fault.name}/{self._rng.random()}")
        hold = rng.uniform(*fault.holds)
        calm = rng.uniform(0.5, 2.0)
        verifier.pauses.count_for(fault.name)
        began = time.monotonic()
        try:
            applied = fault.apply(scene, rng)
        except NotApplied as reason:
            return [f"{fault.name} was not applied: {reason}"]
        self.counts[fault.name] += 1
        self._say(f"{fault.name}: {applied.to}" + (f", for {hold:.1f} s" if hold else ""))
        try:
            time.sleep(hold)
        finally:
            applied.undo()
        time.sleep(fault.watched)
        recovers = verifier.recovers(self._patience)
        problems = [] if recovers else [f"{fault.name}: copying has not caught up {self._patience:g} s after it"]
        self._say(
            f"  {'caught up' if recovers else 'NOT CAUGHT UP'} after {time.monotonic() - began:.1f} s, worst pause "
            f"{verifier.pauses.worst.get(fault.name, 0.0):.1f} s; {verifier.written} records written, "
            f"{verifier.arrived} arrived"
        )
        verifier.pauses.count_for(CALM)
        found = applied.verify()
        self.findings += found
        if not found.is_clean:
            problems.append(f"{fault.name} of {applied.to}: {found}")
        time.sleep(calm)
        return problems
