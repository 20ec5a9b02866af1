"""FIFO: not elastic, never preempts; jobs start in order of submission on the GPUs they request."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.elastic.parameters import ClockParams
from optgap.heuristics.elastic.shared_clock import Clock
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, Settings, State
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def fifo(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """FIFO; `given` as in `ClockParams`."""
    clock = Clock(problem, "fifo", ClockParams(**given))
    return simulate(problem, Fifo(problem, clock), limits)


class Fifo:
    """Rigid FIFO."""

    def __init__(self, problem: ElasticProblem, clock: Clock) -> None:
        self.problem, self.clock = problem, clock
        self.settings = Settings(making="none", strict_order=True)
        self.wanted = clock.requested()

    def decide(self, state: State) -> Decision:
        """Whoever runs goes on; then the queue from its head."""
        count = state.count.copy()
        held = count >= 0
        free = self.problem.gpus - int(self.problem.counts[count[held]].sum())
        for a in np.flatnonzero(~held).tolist():
            k = int(self.wanted[state.jobs[a]])
            n = int(self.problem.counts[k])
            if n > free:
                break
            count[a] = k
            free -= n
        order = np.concatenate([np.flatnonzero(held), np.flatnonzero(~held)])
        clock = self.clock.settle(state, count, order)
        return Decision(count, clock, order)
