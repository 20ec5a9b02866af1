"""Bounds from prices on GPU time: the Lagrangian of the capacity constraint.

With a price π(t) ≥ 0 for a GPU at time t, any schedule that keeps the capacity M satisfies

    Σ_j s_j ≥ Σ_j min_{s ≥ r_j} [ s + n_j ∫_s^{s+d_j} π(t) dt ] − M ∫ π(t) dt

and for a makespan the same without the first s. Any prices give a valid bound; good ones are
found by subgradient steps. They are constant on intervals, so each minimum is taken at an
arrival, or where the start or the end of the job meets a boundary: it is exact, not sampled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray
from optgap.models.result import Outcome, Status, Termination
from optgap.models.work import WORK
from optgap.solvers.backends.safe import EPS
from optgap.solvers.queueing.areas import in_unit, makespan, sum_of_waits
from optgap.solvers.queueing.widths import Width, widths


@dataclass(frozen=True)
class Ascent:
    """Settings of the search for prices.

    Parameters
    ----------
    steps: per round.
    cells: intervals of the rounds; each starts with the prices of the one before, the first with
        none.
    per_job: intervals per job at most, beyond the first two rounds.
    paces: lengths of the steps, relative to the highest price, one after another.
    momentum: share of the last direction in the next one.
    work: looks at a job's start per round, about: fewer steps where each takes many.
    safe: relative allowance for rounding in the sums.
    """

    steps: int = 400
    cells: tuple[int, ...] = (512, 2048, 8192)
    per_job: int = 9
    paces: tuple[float, ...] = (0.5, 0.1, 0.02, 0.004)
    momentum: float = 0.9
    work: float = 4e8
    safe: float = 1e-9


ASCENT = Ascent()


def bound_prices(
    problem: QueueingProblem, *, limits: Limits, seed: int, steps: int = ASCENT.steps
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
    return Outcome(
        None,
        Status.BOUND_ONLY,
        limits.stop or Termination.COMPLETED,
        bound=in_unit(problem, value),
        bound_by=by,
    )


def best_bound(
    problem: QueueingProblem, limits: Limits, steps: int = ASCENT.steps
) -> tuple[float, str]:
    """Return a bound on Σ wait, or on the makespan, s, and who proved it."""
    if problem.objective.goal == "makespan":
        return makespan(problem)
    value, by = sum_of_waits(problem)
    ascent = replace(ASCENT, steps=max(1, round(steps * limits.effort)))
    for width in widths(problem):
        found = _PriceSearch(problem, width, ascent, limits, value).run()
        if found > value:
            value, by = found, "prices on GPU time"
    return value, by


@dataclass
class _PriceSearch:
    """Subgradient steps on the prices, from few intervals to many."""

    problem: QueueingProblem
    width: Width
    ascent: Ascent
    limits: Limits
    known: float

    def run(self) -> float:
        """Return the best bound on Σ wait found, s."""
        jobs = self.problem.jobs
        demand, capacity = self.width
        some = demand > 0
        self.release, self.duration = jobs.arrival_s[some], jobs.duration_s[some]
        self.demand = demand[some] / capacity  # the machine has capacity 1
        later = np.cumsum((self.demand * self.duration)[::-1])[::-1]
        busy = max(0.0, float((self.release + later).max()))  # when the one machine is done
        first, last = float(self.release[0]), busy + float(self.duration.max())
        self.best, self.prices = 0.0, np.zeros(self.ascent.cells[0])
        for k, cells in enumerate(self.ascent.cells):
            if k > 1 and cells > self.ascent.per_job * len(jobs):
                break
            edges = np.linspace(first, last, cells + 1)
            self._climb(edges, np.repeat(self.prices, cells // len(self.prices)))
            if self.limits.stop is not None or self.looks > self.ascent.work:
                break
        return self.best

    def _value(self, edges: FloatArray, price: FloatArray) -> tuple[float, FloatArray]:
        """Return the bound that prices give, safely rounded, and its slope per interval."""
        usage = np.zeros(len(price))
        total, looked = priced(self.release, self.duration, self.demand, edges, price, usage)
        self.looks = float(looked)
        self.limits.spend(WORK.queueing_look * looked)
        lengths = np.diff(edges)
        paid = float((price * lengths).sum())
        value = total - paid
        # and times late in a long stream have few digits left for waits
        late = 4 * EPS * len(self.release) * float(edges[-1])
        value -= self.ascent.safe * (abs(total) + paid) + late
        if value > self.best:
            self.best, self.prices = value, price
        return value, usage / lengths - 1

    def _climb(self, edges: FloatArray, price: FloatArray) -> None:
        """Steps along recent slopes, each interval's scaled by those it has seen (AdaGrad)."""
        shown, ascent = in_unit(self.problem, max(self.best, self.known)), self.ascent
        scale = float(price.max()) or float(self.duration.mean() / 10)
        for pace in ascent.paces:
            seen, recent = np.full(len(price), 1e-12), np.zeros(len(price))
            value, slope = self._value(edges, price)
            steps = int(min(ascent.steps, max(4, ascent.work / max(self.looks, 1.0))))
            best, kept = value, price
            for _ in range(steps // len(ascent.paces)):
                if self.limits.stop is not None:
                    return
                self.limits.progress("prices on GPU time", None, shown)
                seen += slope * slope
                recent = ascent.momentum * recent + (1 - ascent.momentum) * slope
                price = np.maximum(0.0, price + pace * scale * recent / np.sqrt(seen))
                value, slope = self._value(edges, price)
                if value > best:
                    best, kept = value, price
            price = kept


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
