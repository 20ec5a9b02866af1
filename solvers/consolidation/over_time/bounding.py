"""The bound by prices over time: Dantzig-Wolfe over tasks with their finish."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.consolidation.bounds.energy import bound_energy
from optgap.solvers.consolidation.numerics import BOUND_SAFETY
from optgap.solvers.consolidation.outcome import Bound, bound_only
from optgap.solvers.consolidation.over_time.master import Master, Prices, priced
from optgap.solvers.consolidation.over_time.parameters import BoundParams
from optgap.solvers.consolidation.over_time.relaxation import Relaxation, relaxation

BY_PRICES = "prices of memory, presence and progress over time, each task at its cheapest"


def bound_over_time(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """A bound on every schedule, moves for nothing included; `given` as in `BoundParams`.

    It is no less than that of ``bound-energy``.
    """
    params = chosen(BoundParams, given, "bound-over-time")
    bound, rounds = best_bound(problem, limits, params)
    return replace(bound_only(bound, limits), info={"rounds": rounds})


def best_bound(
    problem: ConsolidationProblem, limits: Limits, params: BoundParams
) -> tuple[Bound, int]:
    """The larger of the bound by prices and that of ``bound-energy``; rounds of the first."""
    known = bound_energy(problem, limits=limits, seed=0)
    best = Bound(float(known.bound or 0.0), str(known.bound_by), ())
    found, rounds = by_prices(relaxed_by(problem, params), limits, params)
    return best.raised(found, BY_PRICES), rounds


def relaxed_by(problem: ConsolidationProblem, params: BoundParams) -> Relaxation:
    """The relaxation with as many buckets as the parameters say."""
    buckets = params.buckets or (72 if len(problem) <= 150 else 48)
    return relaxation(problem, buckets, params.tangents)


def by_prices(relaxed: Relaxation, limits: Limits, params: BoundParams) -> tuple[float, int]:
    """The best bound that prices prove within the limits, J, and how often they were changed."""
    master = Master(relaxed)
    prices = _first(relaxed)
    everyone = np.arange(relaxed.tasks)
    best, courses = priced(relaxed, prices.feasible(relaxed))
    center = prices
    master.add(courses, everyone)
    rounds = 0
    while rounds < params.rounds:
        rounds += 1
        solved = master.solve(limits)
        if solved is None or limits.stop is not None:
            break
        raw, weights, value = solved
        tried = center.between(raw, params.smoothing)
        improved = False
        for candidate in (tried, raw):
            bound, courses = priced(relaxed, candidate.feasible(relaxed))
            if bound > best:
                best, center, improved = bound, candidate, True
            master.add(courses, everyone)
            if improved:
                break
        limits.progress("prices", None, best * (1 - BOUND_SAFETY))
        if value - best <= params.close * value and not master.separate(
            weights, 4 * relaxed.buckets, 1e-3
        ):
            break
    scale = float(np.abs(best)) + float(np.abs(relaxed.work).sum())
    return best - BOUND_SAFETY * scale, rounds


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
