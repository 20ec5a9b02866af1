"""FIFO, SRTF and AFS: a common clock, and GPUs by submission, by length, or by tournament."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from optgap.heuristics.elastic import kernels
from optgap.heuristics.elastic.budget import within_budget
from optgap.heuristics.elastic.common import Clock, next_count, previous_count
from optgap.heuristics.elastic.engine import Decision, Settings, State, simulate
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.problem import Ints
from optgap.models.limits import Limits
from optgap.models.result import Outcome


@within_budget
def fifo(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    frequency: float = 0.0,
    capped: bool = True,
    backfill: bool = False,
) -> Outcome:
    """Not elastic, never preempts: jobs start in order of submission on the GPUs they request.

    Parameters
    ----------
    frequency: common clock, MHz; 0 for the highest.
    capped: keep the power limit by lowering clocks, and by letting jobs wait.
    backfill: jobs behind one that does not fit may start.
    """
    return simulate(problem, Fifo(problem, Clock(problem, "fifo", frequency, capped), backfill),
                    limits)  # fmt: skip


class Fifo:
    """Rigid FIFO."""

    def __init__(self, problem: ElasticProblem, clock: Clock, backfill: bool) -> None:
        self.problem, self.clock, self.backfill = problem, clock, backfill
        self.settings = Settings(making="none", strict_order=not backfill)
        self.wanted = clock.requested()

    def decide(self, state: State) -> Decision:
        """Whoever runs goes on; then the queue from its head."""
        count = state.count.copy()
        held = count >= 0
        free = self.problem.gpus - int(self.problem.counts[count[held]].sum())
        for a in np.flatnonzero(~held).tolist():
            k = int(self.wanted[state.jobs[a]])
            n = int(self.problem.counts[k])
            if n <= free:
                count[a] = k
                free -= n
            elif not self.backfill:
                break
        order = np.concatenate([np.flatnonzero(held), np.flatnonzero(~held)])
        clock = self.clock.settle(state, count, order)
        return Decision(count, clock, order)


@within_budget
def afs(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    frequency: float = 0.0,
    capped: bool = True,
) -> Outcome:
    """AFS-L (Hwang et al., NSDI 2021): elastic, knows lengths, doubles GPU counts.

    The next GPUs go to the winner of a tournament of pairs: the longer job if its relative gain
    on the new speed is above the shorter one's on the old speed.
    """
    return simulate(problem, Afs(problem, Clock(problem, "afs", frequency, capped)), limits)


class Elastic(ABC):
    """What elastic schedulers at a common clock share."""

    def __init__(self, problem: ElasticProblem, clock: Clock) -> None:
        self.problem, self.clock = problem, clock
        self.settings = Settings(making="least")
        self.least, self.following = next_count(problem)
        clock.fewer = previous_count(problem)
        top = int(clock.wanted[0])
        self.speed = np.where(np.isfinite(problem.time_s), 1.0 / problem.time_s, 0.0)[:, :, top]

    @abstractmethod
    def shares(self, state: State) -> tuple[Ints, Ints]:
        """(A,) count index, and the order in which jobs keep what they have under the limit."""

    def decide(self, state: State) -> Decision:
        """From scratch at every event."""
        count, order = self.shares(state)
        clock = self.clock.settle(state, count, order)
        return Decision(count, clock)


class Afs(Elastic):
    """AFS-L as a policy of the engine."""

    def shares(self, state: State) -> tuple[Ints, Ints]:
        count = kernels.afs(
            state.of_class,
            state.remaining,
            self.problem.counts,
            self.following,
            self.least,
            self.speed,
            self.problem.gpus,
        )
        length = state.remaining / self.speed[state.of_class, self.least[state.of_class]]
        return count, np.argsort(length, kind="stable")


@within_budget
def elastic_fifo(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    frequency: float = 0.0,
    capped: bool = True,
) -> Outcome:
    """Elastic FIFO: the fewest GPUs for each in order of submission, then doubled in turn."""
    clock = Clock(problem, "elastic-fifo", frequency, capped)
    return simulate(problem, RoundRobin(problem, clock, by_length=False), limits)


@within_budget
def elastic_srtf(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    frequency: float = 0.0,
    capped: bool = True,
) -> Outcome:
    """Elastic SRTF: the same in order of remaining time on the GPUs requested."""
    clock = Clock(problem, "elastic-srtf", frequency, capped)
    return simulate(problem, RoundRobin(problem, clock, by_length=True), limits)


class RoundRobin(Elastic):
    """Fewest GPUs first, then growth in turn while it still makes a job faster."""

    def __init__(self, problem: ElasticProblem, clock: Clock, by_length: bool) -> None:
        super().__init__(problem, clock)
        self.by_length = by_length

    def shares(self, state: State) -> tuple[Ints, Ints]:
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
