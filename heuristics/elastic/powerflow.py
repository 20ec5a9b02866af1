"""PowerFlow: Algorithm 1 at every event, with profiling, buddy placement and nodes switched off.

Phase 1 gives GPUs, and phase 2 raises clocks. Each takes the step that saves most time per energy
(Eq. 20-21) as long as the power limit holds (Eq. 19). f* is the clock of least time × energy. The
algorithm is `powerflow_kernels.allocate`, and `predictions.steps_of` has the priorities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.heuristics.elastic.parameters import PowerFlowParams
from optgap.heuristics.elastic.powerflow_kernels import Jobs, Limit, Steps, allocate
from optgap.heuristics.elastic.predictions import Known, Online
from optgap.heuristics.elastic.shared_clock import govern, neighbours
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Ints
from optgap.models.elastic.checks import POWER_SLACK
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def powerflow(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run PowerFlow (Algorithm 1); `given` is as in `PowerFlowParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(PowerFlowParams, given, "powerflow")
    eta = options.eta
    if eta is not None and not (isinstance(eta, (int, float)) and 0 <= eta <= 1):
        raise InputError("powerflow", "eta", eta, "a number from 0 to 1")
    perfect = options.profiles == "perfect"
    model = Known(problem)
    if not perfect:
        model = Online(problem, seed, options.sigma_time, options.sigma_energy)
    limit = problem.power_limit_w
    if eta is not None:
        limit = min(limit, eta * problem.gpus * problem.p_max_w)
    elif not math.isfinite(limit):  # no limit on power: η still steers
        limit = problem.eta * problem.gpus * problem.p_max_w
    settings = Settings(
        switch_off=True,
        prerun_s=0.0 if perfect else options.prerun_s,
        profile_s=0.0 if perfect else options.profile_s,
        strict=options.mode == "strict",
    )
    return simulate(problem, PowerFlow(problem, settings, model, limit, options), limits)


class PowerFlow:
    """Algorithm 1 as a policy of the engine."""

    def __init__(
        self,
        problem: ElasticProblem,
        settings: Settings,
        model: Known,
        limit_w: float,
        options: PowerFlowParams,
    ) -> None:
        self.problem, self.settings, self.model = problem, settings, model
        self.limit_w = limit_w * (1 + POWER_SLACK)
        self.strict = options.mode == "strict"
        self.clock_policy = options.frequency
        self.fewer = neighbours(problem.time_s)[2]

    def decide(self, state: ElasticState) -> Decision:
        """Run phases 1 and 2 from scratch, and correct predictions that break the power limit."""
        steps, row = self.model.steps(state, self.clock_policy)
        order = self._first(state, steps, row)
        jobs = Jobs(row, order, state.remaining, state.locked, state.locked_w)
        count, clock, _ = allocate(jobs, steps, self.limit)
        if self.strict:
            self._rein_in(state, count, clock)
            if (count < 0).all():
                self._at_least_one(state, order, count, clock)
        return Decision(count, clock)

    @property
    def limit(self) -> Limit:
        """Return the GPUs and the power that the steps may use."""
        problem = self.problem
        return Limit(problem.gpus, problem.gpus_per_node, self.limit_w, self.strict)

    def _first(self, state: ElasticState, steps: Steps, row: Ints) -> Ints:
        """Return the order of the first GPUs, least energy first (Eq. 20), shape (A,)."""
        k = steps.least[row]
        energy_j = state.remaining * self.model.energy_j[row, k, steps.start[row, k]]
        return np.argsort(energy_j, kind="stable")

    def _rein_in(self, state: ElasticState, count: Ints, clock: Ints) -> None:
        """Lower clocks until the true power fits, because only meters are exact."""
        if self.model.exact:
            return
        held, order = np.where(state.locked >= 0, state.locked_w, -1.0), np.arange(len(count))
        govern(
            state.of_class, count, clock, order, watts=self.model.counted_w, locked=held,
            fewer=self.fewer, limit=self.limit_w,
        )  # fmt: skip

    def _at_least_one(self, state: ElasticState, order: Ints, count: Ints, clock: Ints) -> None:
        """Run the first job that fits below f*, because f* alone may exceed the limit.

        If the planned limit (η) is below the need of every job, run the first job at its least
        power, which is always within the problem's own limit.
        """
        finite = np.isfinite(self.problem.time_s)
        watts = np.where(finite, self.model.counted_w, np.inf)
        for a in order.tolist():
            allowed = watts[state.of_class[a]] <= self.limit_w
            if allowed.any():
                k = int(allowed.any(axis=1).argmax())
                count[a], clock[a] = k, int(np.flatnonzero(allowed[k])[-1])
                return
        least = watts[state.of_class[order[0]]]
        count[order[0]], clock[order[0]] = np.unravel_index(int(least.argmin()), least.shape)
