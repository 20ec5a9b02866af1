"""Work value with models that are learnt while the jobs run, as PowerFlow learns them (Sec. 5.2).

Each job is decided about by its own fits; a job in a profiling window keeps its GPUs and its power.
Fits may take a choice for one within the power limit that is not: then clocks are cut to a common
ceiling until the true power fits, as PowerFlow's are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optgap.heuristics.elastic.beliefs import Beliefs
from optgap.heuristics.elastic.growing import neighbours
from optgap.heuristics.elastic.parameters import STATES, WorkValueParams
from optgap.heuristics.elastic.shared_clock import govern
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Ints
from optgap.models.elastic.checks import POWER_SLACK
from optgap.models.elastic.simulation.most_worth import EstimatedWorth, MostWorth
from optgap.models.elastic.simulation.protocol import Decision, Settings, State
from optgap.models.elastic.snapshot import Choices
from optgap.solvers.elastic.snapshot import solve


class LearntWorth:
    """The most worth of work at each event, by what is believed of every job."""

    def __init__(self, problem: ElasticProblem, options: WorkValueParams, seed: int) -> None:
        self.problem, self.options = problem, options
        self.settings = Settings(
            switch_off=True, prerun_s=options.prerun_s, profile_s=options.profile_s
        )
        self.beliefs = Beliefs(problem, seed, options.sigma_time, options.sigma_energy)
        self.learnt: dict[int, Choices] = {}
        self.limit_w = problem.power_allowed_w * (1 + POWER_SLACK)
        self.fewer = neighbours(problem.time_s)[2]

    def decide(self, state: State) -> Decision:
        """From scratch at every event; who is being profiled stays."""
        held = state.locked >= 0
        count, clock = state.locked.copy(), state.clock.copy()
        free = np.flatnonzero(~held)
        if len(free):
            made = self._most(state, free)
            count[free], clock[free] = made.count, made.clock
        watts = np.where(held, state.locked_w, -1.0)
        order, counted_w = np.arange(len(count)), self.problem.counted_w
        govern(state.of_class, count, clock, order, counted_w, watts, self.fewer, self.limit_w)
        if (count < 0).all():  # fits may find that nobody can run
            least = np.where(np.isfinite(self.problem.time_s), counted_w, np.inf)
            first = least[state.of_class[0]]
            count[0], clock[0] = np.unravel_index(int(first.argmin()), first.shape)
        return Decision(count, clock)

    def _most(self, state: State, free: Ints) -> Decision:
        """What these jobs do on the GPUs and W that the others leave."""
        problem, options = self.problem, self.options
        self._learn(state, state.jobs[free])
        choices = Choices.joined([self.learnt[j] for j in state.jobs[free].tolist()])
        worth = EstimatedWorth(problem, choices, options.power)
        most = MostWorth(problem, choices, worth, solve, options.spread_s, options.gap, STATES)
        their = replace(
            state, jobs=state.jobs[free], of_class=np.arange(len(free)),
            remaining=state.remaining[free], count=state.count[free], clock=state.clock[free],
        )  # fmt: skip
        held = state.locked[state.locked >= 0]
        gpus = problem.gpus - int(problem.counts[held].sum())
        limit = max(0.0, problem.power_allowed_w - float(state.locked_w.sum()))
        return most.within(their, gpus, limit)

    def _learn(self, state: State, jobs: Ints) -> None:
        """Fit these jobs anew where they have shown more."""
        counts = self.problem.counts
        for job in self.beliefs.fresh(state, jobs).tolist():
            time_s, power_w = self.beliefs.learnt(job, state.seen[job])
            counted = np.maximum(power_w, self.problem.idle_w * counts[:, None])
            self.learnt[job] = Choices.from_tables(time_s[None], counted[None], counts)
        for job in self.learnt.keys() - self.beliefs.jobs.keys():
            del self.learnt[job]
