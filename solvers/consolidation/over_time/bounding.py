"""The bound by prices over time: Dantzig-Wolfe over tasks with their finish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.consolidation.numerics import BOUND_SAFETY
from optgap.solvers.consolidation.outcome import Bound, bound_only
from optgap.solvers.consolidation.over_time.master import Master, Prices, priced
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams
from optgap.solvers.consolidation.over_time.relaxation import Relaxation, relaxation
from optgap.solvers.engines.column_generation import generate

BY_PRICES = "prices of memory, presence and progress over time, each task at its cheapest"


def bound_over_time(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """Bound every schedule from below, schedules that move tasks for nothing included.

    `given` as in `BoundParams`.

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
    """Return the best bound that prices prove within the limits, and how often they changed."""
    few = len(problem) <= TUNING.most_tasks
    relaxed = relaxation(problem, 40 if len(problem) <= 150 else 32, alone=few)
    if relaxed.curve.watts[-1] <= 0:
        return Bound(0.0, BY_PRICES, ()), 0
    first = [priced(relaxed, prices.feasible(relaxed)) for prices in first_prices(relaxed)]
    best, rounds = max(0.0, *(bound for bound, _ in first)), 0
    if few:
        master = Master(relaxed, params.close)
        master.add(first[0][1])
        found = generate(
            master, limits, bound=best, rounds=params.rounds * limits.effort,
            tell=lambda value, bound: limits.progress("prices", None, bound * (1 - BOUND_SAFETY)),
        )  # fmt: skip
        best, rounds = found.bound, found.rounds
    best -= BOUND_SAFETY * (best + float(np.abs(relaxed.work).sum()))
    return Bound(best, BY_PRICES, ()), rounds


def first_prices(relaxed: Relaxation) -> Iterator[Prices]:
    """Yield the least price of progress on utilisation or on one share; the least power of a GPU.

    The former count the energy of the work itself, the last one that of GPUs awake for certain.
    """
    curve, shape = relaxed.curve, (len(relaxed.shares), relaxed.buckets)
    none, free = np.zeros(relaxed.buckets), np.zeros(relaxed.tasks)
    least = float((curve.watts / curve.pace).min())
    if relaxed.asking:
        asking = np.full(relaxed.buckets, least)
        yield Prices(np.zeros(shape), np.zeros(shape), asking, none, least * relaxed.weight)
    for share in range(relaxed.regular):
        presence, progress = np.zeros(shape), np.zeros(shape)
        presence[share], progress[share] = least * relaxed.base, least
        yield Prices(presence, progress, none, none, free)
    counted = np.full(relaxed.buckets, float(curve.watts.min()))
    yield Prices(np.zeros(shape), np.zeros(shape), none, counted, free)
