"""Bounds from prices on GPU time: the Lagrangian of the capacity constraint.

With a price π(t) ≥ 0 for a GPU at time t, any schedule that keeps the capacity M satisfies

    Σ_j s_j ≥ Σ_j min_{s ≥ r_j} [ s + n_j ∫_s^{s+d_j} π(t) dt ] − M ∫ π(t) dt

and for a makespan the same without the first s. Any prices give a valid bound; good ones are
found by subgradient steps. They are constant on intervals, so each minimum is taken at an
arrival, or where the start or the end of the job meets a boundary: it is exact, not sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray
from optgap.models.result import Outcome, Termination
from optgap.models.work import WORK
from optgap.solvers.backends.safe import EPS
from optgap.solvers.engines.ascent import Priced, ascend
from optgap.solvers.queueing.areas import SAFE, in_unit, makespan, outcome, sum_of_waits
from optgap.solvers.queueing.widths import Width, widths


@dataclass(frozen=True)
class PricesTuning:
    """Settings of the search for prices.

    Parameters
    ----------
    steps: of an ascent.
    cells: intervals of the ascents; each starts with the prices of the one before, the first with
        none.
    per_job: intervals per job at most, beyond the first two ascents.
    work: units of an ascent, about: fewer steps where each takes many.
    """

    steps: int = 400
    cells: tuple[int, ...] = (512, 2048, 8192)
    per_job: int = 50
    work: float = 12.0


TUNING = PricesTuning()


def bound_prices(
    problem: QueueingProblem, *, limits: Limits, seed: int, steps: int = TUNING.steps
) -> Outcome:
    """Return the best bound from prices on GPU time, and no worse than `bound_area`.

    For the makespan prices give nothing beyond areas, which is what is returned.

    Parameters
    ----------
    steps: subgradient steps per round; fewer for many jobs.

    Raises
    ------
    InputError: for fewer than one step.
    """
    if steps < 1:
        raise InputError("bound-prices", "steps", steps, "at least 1")
    value, by = best_bound(problem, limits, steps)
    return outcome(problem, value, by, limits.stop or limits.cut or Termination.COMPLETED)


def best_bound(
    problem: QueueingProblem, limits: Limits, steps: int = TUNING.steps
) -> tuple[float, str]:
    """Return a bound on Σ wait, or on the makespan, s, and who proved it."""
    if problem.objective.goal == "makespan":
        return makespan(problem)
    value, by = sum_of_waits(problem)
    steps = max(1, round(steps * limits.effort))
    for width in widths(problem):
        found = _best_prices(problem, width, limits, steps=steps, known=value)
        if found > value:
            value, by = found, "prices on GPU time"
    return value, by


def _best_prices(
    problem: QueueingProblem, width: Width, limits: Limits, *, steps: int, known: float
) -> float:
    """Return the best bound on Σ wait of ascents on ever more intervals, s."""
    jobs, (demand, capacity) = problem.jobs, width
    some = demand > 0
    release, duration = jobs.arrival_s[some], jobs.duration_s[some]
    share = demand[some] / capacity  # the machine has capacity 1
    later = np.cumsum((share * duration)[::-1])[::-1]
    busy = max(0.0, float((release + later).max()))  # when the one machine is done
    first, last = float(release[0]), busy + float(duration.max())

    def evaluate(price: FloatArray) -> Priced:
        """Return the bound that prices give, safely rounded, and its slope per interval."""
        usage = np.zeros(len(price))
        total, looked = priced(release, duration, share, edges, price, usage)
        limits.spend(WORK.queueing_look * looked)
        paid = float((price * lengths).sum())
        # times late in a long stream have few digits left for waits
        late = 4 * EPS * len(release) * float(edges[-1])
        safe = SAFE * (abs(total) + paid) + late
        return Priced(total - paid - safe, usage / lengths - 1)

    def tell(bound: float) -> None:
        limits.progress("prices on GPU time", None, in_unit(problem, max(bound, known)))

    best, prices = 0.0, np.zeros(TUNING.cells[0])
    for k, cells in enumerate(TUNING.cells):
        if k > 1 and cells > TUNING.per_job * len(jobs):
            break
        edges = np.linspace(first, last, cells + 1)
        lengths = np.diff(edges)
        found = ascend(
            evaluate,
            np.repeat(prices, cells // len(prices)),
            limits,
            rounds=steps,
            scale=float(prices.max()) or float(duration.mean() / 10),
            work=TUNING.work,
            tell=tell,
        )
        best, prices = max(best, found.bound), found.prices
        if found.stopped is not None:
            break
    return best


@compiled
def priced(
    release: FloatArray,
    duration: FloatArray,
    demand: FloatArray,
    edges: FloatArray,
    price: FloatArray,
    usage: FloatArray,
) -> tuple[float, int]:
    """Σ_j min_s [(s − r_j) + n_j·∫π], and what it took; adds what jobs use per interval to `usage`.

    Parameters
    ----------
    edges: boundaries of the intervals, s, shape (K + 1,); no price before or after.
    price: π per interval, shape (K,).
    """
    cells = len(price)
    total, looked = 0.0, 0
    paid = np.zeros(cells + 1)  # ∫ up to each edge
    for k in range(cells):
        paid[k + 1] = paid[k] + price[k] * (edges[k + 1] - edges[k])
    for j in range(len(release)):
        r, d, n = release[j], duration[j], demand[j]
        a = np.searchsorted(edges, r, side="right") - 1  # interval that the start is in
        b = np.searchsorted(edges, r + d, side="right") - 1  # and the end
        s = r
        best, at = np.inf, r
        while True:
            looked += 1
            cost = (s - r) + n * (
                _paid(paid, edges, price, b, s + d) - _paid(paid, edges, price, a, s)
            )
            if cost < best:
                best, at = cost, s
            # the next boundary that the start or the end meets
            to_start = edges[a + 1] - s if a < cells else np.inf
            to_end = edges[b + 1] - (s + d) if b < cells else np.inf
            step = min(to_start, to_end)
            if not step < np.inf or s + step - r >= best:
                break
            s = edges[a + 1] if to_start <= to_end else edges[b + 1] - d
            if to_start <= step:
                a += 1
            if to_end <= step:
                b += 1
        total += best
        k = max(0, int(np.searchsorted(edges, at, side="right")) - 1)
        while k < cells and edges[k] < at + d:
            usage[k] += n * max(0.0, min(at + d, edges[k + 1]) - max(at, edges[k]))
            k += 1
    return total, looked


@compiled
def _paid(paid: FloatArray, edges: FloatArray, price: FloatArray, k: int, t: float) -> float:
    """Return ∫π up to t in interval k (len(price): after the last; -1: before the first)."""
    if k < 0:
        return 0.0
    total: float = paid[-1]
    if k < len(price):
        total = paid[k] + price[k] * (t - edges[k])
    return total
