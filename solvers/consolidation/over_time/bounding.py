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
from optgap.solvers.consolidation.numerics import BOUND_SAFETY
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
    buckets = 40 if len(problem) <= 150 else 32
    found, rounds = by_prices(relaxation(problem, buckets), limits, params)
    return best.raised(found, BY_PRICES), rounds


def by_prices(relaxed: Relaxation, limits: Limits, params: BoundParams) -> tuple[float, int]:
    """Return the best bound that prices prove within the limits, J, and how often they changed."""
    if relaxed.curve.watts[-1] <= 0:
        return 0.0, 0
    best, rounds = generated(relaxed, limits, params)
    return best - BOUND_SAFETY * (best + float(np.abs(relaxed.work).sum())), rounds


def generated(relaxed: Relaxation, limits: Limits, params: BoundParams) -> tuple[float, int]:
    """Generate courses and rows until none is missing; the best bound, J, and the rounds."""
    master, rounds = Master(relaxed), 0
    bound, courses = priced(relaxed, _first(relaxed).feasible(relaxed))
    best = max(0.0, bound)
    master.add(courses)
    while rounds < params.rounds * limits.effort:
        rounds += 1
        solved = master.solve(limits)
        if solved is None or limits.stop is not None:
            break
        prices, weights, value = solved
        bound, courses = priced(relaxed, prices.feasible(relaxed))
        master.add(courses)
        best = max(best, bound)
        limits.spend(CONSOLIDATION.course * relaxed.cover.size * relaxed.buckets)
        limits.progress("prices", None, best * (1 - BOUND_SAFETY))
        if value - best > params.close * value:
            continue
        if not master.separate(weights, TUNING.new_rows * relaxed.buckets, TUNING.least_broken):
            break
    return best, rounds


def _first(relaxed: Relaxation) -> Prices:
    """Return first prices: a GPU's power at full pace, by utilisation or by the first share."""
    shape = (len(relaxed.shares), relaxed.buckets)
    presence, progress = np.zeros(shape), np.zeros(shape)
    full = float(relaxed.curve.watts[-1])
    asking = np.full(relaxed.buckets, full if relaxed.asking else 0.0)
    if not relaxed.asking:
        progress[0] = full
    none = np.zeros(relaxed.buckets)
    return Prices(presence, progress, asking, none, np.zeros(relaxed.tasks))
