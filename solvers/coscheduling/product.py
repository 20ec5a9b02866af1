"""Energy times makespan, by problems that are linear in both.

A product of two positive numbers has no minimum inside a line segment: of all schedules, one at
a corner of the convex hull of the pairs (C, E) is best. Each corner minimises E + s·C for some
price s of time, which is energy again, with idle power higher by s/M. Every price whose least
E + s·C is proven gives a line that no schedule lies below; the corners of those lines bound the
product, and where a corner is too low, the price that joins the two schedules beside it is next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from optgap.models.coscheduling import Application, CoschedulingObjective, CoschedulingProblem
from optgap.models.limits import Limits
from optgap.solvers.backends.safe import EPS

MOST_PRICES = 60
APART = 1e-8
"""Relative distance of prices that are worth trying: lines of nearer ones cross anywhere."""
ENOUGH = 1e-7
"""Relative distance of bound and product at which no more prices are tried."""


@dataclass(frozen=True, slots=True)
class Support:
    """Bound and schedule at one price of time.

    Parameters
    ----------
    price_w: s; infinite for the makespan alone.
    level: proven: no schedule has E + s·C below it; with an infinite price, no C.
    energy_j, makespan_s: of the best schedule found there.
    """

    price_w: float
    level: float
    energy_j: float
    makespan_s: float

    @property
    def product(self) -> float:
        """Energy times makespan of that schedule."""
        return self.energy_j * self.makespan_s


Solver = Callable[[CoschedulingProblem], tuple[float, float, float] | None]
"""Given a problem for energy or makespan: a bound on it, and E and C of a schedule (in the given
problem's own energy), or None when time was up before any bound."""


def priced(problem: CoschedulingProblem, price_w: float) -> CoschedulingProblem:
    """Return the problem for energy whose energy is E + `price_w`·C of this one."""
    more = price_w / problem.gpus
    return replace(
        problem,
        idle_w=problem.idle_w + more,
        applications=tuple(
            Application(
                app.name,
                tuple(replace(m, power_per_gpu_w=m.power_per_gpu_w + more) for m in app.modes),
            )
            for app in problem.applications
        ),
        objective=CoschedulingObjective("energy"),
    )


def _priced_off(problem: CoschedulingProblem, price_w: float) -> float:
    """Return the rounding of `priced` in costs that should not change with the price, J."""
    return math.fsum(
        max(
            4 * EPS * m.gpu_count * m.runtime_s * (m.power_per_gpu_w + problem.idle_w + 2 * price_w)
            for m in problem.application(job).modes
        )
        for job in range(len(problem))
    )


def least_product(problem: CoschedulingProblem, limits: Limits, solve: Solver) -> float | None:
    """Return a bound on energy times makespan; None when time was up before there was one."""

    def at(price_w: float) -> Support | None:
        if math.isinf(price_w):
            found = solve(replace(problem, objective=CoschedulingObjective("makespan")))
            return None if found is None else Support(price_w, *found)
        found = solve(priced(problem, price_w))
        if found is None:
            return None
        level, energy, makespan = found
        level -= _priced_off(problem, price_w)
        return Support(price_w, level, energy - price_w * makespan, makespan)

    ends = (at(0.0), at(math.inf))
    if ends[0] is None or ends[1] is None:
        return None
    known: list[Support] = [ends[0], ends[1]]
    for _ in range(MOST_PRICES):
        best = min(support.product for support in known)
        low, k = min((corner(a, b)[2], k) for k, (a, b) in enumerate(pairwise(known)))
        price = between(known[k], known[k + 1])
        if low >= best * (1 - ENOUGH) or price is None or limits.stop is not None:
            break
        found = at(price)
        if found is None:
            break
        known.insert(k + 1, found)
    return lowest(known)


def lowest(known: Sequence[Support]) -> float:
    """Return the least product above all lines, rounded down.

    The least energy at a makespan C is f(C), the highest of all lines there: convex, falling, with
    its corners among the crossings. C·f(C) is concave between corners, so that one of them, or the
    shortest makespan, is best. Where a crossing is known to ±δ, no point so near has less than
    (C − δ)·f(C + δ); crossings below other lines are points above all lines as well.
    """
    lines = [s for s in known if math.isfinite(s.price_w)]
    shortest = max(s.level for s in known if math.isinf(s.price_w))

    def least_energy(makespan: float) -> float:
        terms = ((s.level, s.price_w * makespan) for s in lines)
        return max(0.0, *(b - p - 2 * EPS * (abs(b) + abs(p)) for b, p in terms))

    found = shortest * least_energy(shortest)
    for low, high in combinations(lines, 2):
        apart = high.price_w - low.price_w
        if not apart > 0:
            continue
        makespan = (high.level - low.level) / apart
        off = 2 * EPS * ((abs(high.level) + abs(low.level)) / apart + abs(makespan))
        if makespan + off > shortest:
            near = max(shortest, makespan - off)
            found = min(found, near * least_energy(makespan + off))
    return found * (1 - 4 * EPS)


def corner(low: Support, high: Support) -> tuple[float, float, float]:
    """Makespan, energy and their product where the lines of two prices meet."""
    if math.isinf(high.price_w):
        makespan = high.level
    else:
        makespan = (high.level - low.level) / (high.price_w - low.price_w)
    energy = low.level - low.price_w * makespan
    return makespan, energy, makespan * energy


def between(low: Support, high: Support) -> float | None:
    """Return the price at which both schedules are worth the same, if it is a new one."""
    shorter = low.makespan_s - high.makespan_s
    dearer = high.energy_j - low.energy_j
    if shorter <= 1e-12 * low.makespan_s or dearer <= 0:
        return None
    price = dearer / shorter
    new = low.price_w * (1 + APART) < price < high.price_w * (1 - APART)
    return price if new else None
