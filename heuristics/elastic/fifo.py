"""Schedulers in a fixed order: FIFO, elastic FIFO and elastic SRTF.

FIFO is not elastic and never preempts: jobs start in order of submission on the GPUs they request.
The elastic schedulers give each job its fewest GPUs in order, and then double these in turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.heuristics.elastic.parameters import ClockParams
from optgap.heuristics.elastic.shared_clock import Clock, Elastic
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Ints
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def fifo(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run FIFO; `given` is as in `ClockParams`."""
    clock = Clock(problem, "fifo", ClockParams(**given))
    return simulate(problem, Fifo(problem, clock), limits)


class Fifo:
    """FIFO without elasticity, as a policy of the engine."""

    def __init__(self, problem: ElasticProblem, clock: Clock) -> None:
        self.problem, self.clock = problem, clock
        self.settings = Settings(making="none", strict_order=True)
        self.wanted = clock.requested()

    def decide(self, state: ElasticState) -> Decision:
        """Keep the running jobs, then start jobs from the head of the queue."""
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


def elastic_fifo(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run the elastic scheduler in order of submission; `given` is as in `ClockParams`."""
    clock = Clock(problem, "elastic-fifo", ClockParams(**given))
    return simulate(problem, RoundRobin(problem, clock, by_length=False), limits)


def elastic_srtf(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run the elastic scheduler in order of remaining time on the GPUs requested."""
    clock = Clock(problem, "elastic-srtf", ClockParams(**given))
    return simulate(problem, RoundRobin(problem, clock, by_length=True), limits)


class RoundRobin(Elastic):
    """Rule that gives each job its fewest GPUs, then more in turn while these make it faster."""

    def __init__(self, problem: ElasticProblem, clock: Clock, by_length: bool) -> None:
        super().__init__(problem, clock)
        self.by_length = by_length

    def shares(self, state: ElasticState) -> tuple[Ints, Ints]:
        problem, c = self.problem, state.of_class
        order = np.arange(len(c))
        if self.by_length:
            k = np.searchsorted(problem.counts, problem.jobs.requested[state.jobs])
            order = np.argsort(state.remaining / self.speed[c, k], kind="stable")
        count = np.full(len(c), -1, dtype=np.int64)
        free = problem.gpus
        for a in order.tolist():
            n = int(problem.counts[self.least[c[a]]])
            if n <= free:
                count[a] = self.least[c[a]]
                free -= n
        growing = [a for a in order.tolist() if count[a] >= 0]
        while growing and free > 0:
            able = []
            for a in growing:
                after = int(self.following[c[a], count[a]])
                if after < 0 or self.speed[c[a], after] <= self.speed[c[a], count[a]]:
                    continue
                more = int(problem.counts[after] - problem.counts[count[a]])
                if more <= free:
                    count[a] = after
                    free -= more
                    able.append(a)
            growing = able
        return count, order
