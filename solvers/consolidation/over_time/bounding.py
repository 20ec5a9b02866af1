"""The bound by prices over time: Dantzig-Wolfe over tasks with their finish."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, FloatArray
from optgap.solvers.consolidation.outcome import Bound, bound_only
from optgap.solvers.consolidation.over_time.energy import bound_energy
from optgap.solvers.consolidation.over_time.master import Master, Prices, priced
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams
from optgap.solvers.consolidation.over_time.relaxation import Relaxation, relaxation

BY_PRICES = "prices of memory, presence and progress over time, each task at its cheapest"


def bound_over_time(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """Bound every schedule from below, schedules that move tasks for nothing included.

    The bound is no less than that of ``bound-energy``. `given` as in `BoundParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    params = chosen(BoundParams, given, "bound-over-time")
    bound, rounds = best_bound(problem, limits, params)
    return replace(bound_only(bound, limits), info={"rounds": rounds})


def best_bound(
    problem: ConsolidationProblem, limits: Limits, params: BoundParams
) -> tuple[Bound, int]:
    """Return the larger of the bounds by prices and of ``bound-energy``, and the rounds taken."""
    known = bound_energy(problem, limits=limits, seed=0)
    best = Bound(float(known.bound or 0.0), str(known.bound_by), ())
    if len(problem) > TUNING.most_tasks or limits.stop is not None:
        return best, 0
    buckets = params.buckets or (40 if len(problem) <= 150 else 32)
    found, rounds = by_prices(relaxation(problem, buckets, TUNING.tangents), limits, params)
    return best.raised(found, BY_PRICES), rounds


def by_prices(relaxed: Relaxation, limits: Limits, params: BoundParams) -> tuple[float, int]:
    """Return the best bound that prices prove within the limits, J, and how often they changed."""
    besides = float(relaxed.curve.work_j.sum())
    if relaxed.curve.watts[-1] <= 0:  # only what follows utilisation draws any power
        return besides * (1 - BOUND_SAFETY), 0
    run = Run(relaxed, params)
    best = run.go(limits)
    scale = best + float(np.abs(relaxed.work).sum())
    return best + besides - BOUND_SAFETY * (scale + besides), run.rounds


class Run:
    """Column generation on one relaxation.

    Attributes
    ----------
    best: the best bound so far, J. rounds: of programs solved.
    """

    def __init__(self, relaxed: Relaxation, params: BoundParams) -> None:
        self.relaxed, self.params, self.rounds = relaxed, params, 0
        self.master = Master(relaxed)
        self.center = _first(relaxed)
        self.weights: FloatArray = np.zeros(0)
        bound, first = priced(relaxed, self.center.feasible(relaxed))
        self.best = max(0.0, bound)
        self.master.add(first)

    def go(self, limits: Limits) -> float:
        """Until no row is broken and no course is missing; the best bound, J."""
        params, master = self.params, self.master
        while self.rounds < params.rounds * limits.effort:
            self.rounds += 1
            solved = master.solve(limits)
            if solved is None or limits.stop is not None:
                break
            raw, self.weights, value = solved
            self._try(raw)
            limits.spend(2 * CONSOLIDATION.course * self.relaxed.cover.size * self.relaxed.buckets)
            limits.progress("prices", None, self.best * (1 - BOUND_SAFETY))
            missing = value - self.best > params.close * value
            if missing:
                continue
            most = TUNING.new_rows * self.relaxed.buckets
            if not master.separate(self.weights, most, TUNING.least_broken):
                break
        return self.best

    def _try(self, raw: Prices) -> None:
        """Courses at prices between the best and the last; at the last where that is no better."""
        for prices in (self.center.between(raw, TUNING.smoothing), raw):
            bound, courses = priced(self.relaxed, prices.feasible(self.relaxed))
            self.master.add(courses)
            if bound > self.best:
                self.best, self.center = bound, prices
                return


def _first(relaxed: Relaxation) -> Prices:
    """What a GPU draws at full pace, all of it charged for utilisation, or for the first share."""
    shape = (len(relaxed.shares), relaxed.buckets)
    presence, progress = np.zeros(shape), np.zeros(shape)
    full = float(relaxed.curve.watts[-1])
    asking = np.full(relaxed.buckets, full if relaxed.asking else 0.0)
    if not relaxed.asking:
        progress[0] = full
    none = np.zeros(relaxed.buckets)
    return Prices(presence, progress, asking, none, np.zeros(relaxed.tasks))
