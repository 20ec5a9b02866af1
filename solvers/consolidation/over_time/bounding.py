"""The bound by prices over time: Dantzig-Wolfe over tasks with their finish."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.consolidation.numerics import BOUND_SAFETY
from optgap.solvers.consolidation.outcome import Bound, bound_only
from optgap.solvers.consolidation.over_time.energy import bound_energy
from optgap.solvers.consolidation.over_time.master import Master, Prices
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams
from optgap.solvers.consolidation.over_time.relaxation import Relaxation, relaxation
from optgap.solvers.engines.column_generation import generate

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
    master = Master(relaxed, params.close)
    first = master.price(_first(relaxed), limits)
    found = generate(
        master, limits, bound=max(0.0, first.bound), rounds=params.rounds * limits.effort,
        tell=lambda value, bound: limits.progress("prices", None, bound * (1 - BOUND_SAFETY)),
    )  # fmt: skip
    safe = found.bound - BOUND_SAFETY * (found.bound + float(np.abs(relaxed.work).sum()))
    return safe, found.rounds


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
