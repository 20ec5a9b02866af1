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

from optgap.models.coscheduling import Application, CoschedulingObjective, CoschedulingProblem, Mode
from optgap.models.limits import Limits

MOST_PRICES = 60
SLACK = 1e-6
"""Relative; a crossing this far below another line still counts as a corner."""
ENOUGH = 1e-7
"""Relative distance of bound and product at which no more prices are tried."""


@dataclass(frozen=True, slots=True)
class Support:
    """What is known at one price of time.

    Parameters
    ----------
    price_w: s; infinite for the makespan alone.
    level: proven: no schedule has E + s·C below it; with an infinite price, no C.
    energy_j, makespan_s: of the best schedule found there, or None.
    """

    price_w: float
    level: float
    energy_j: float | None
    makespan_s: float | None

    @property
    def product(self) -> float:
        """Energy times makespan of that schedule."""
        if self.energy_j is None or self.makespan_s is None:
            return math.inf
        return self.energy_j * self.makespan_s


Solver = Callable[[CoschedulingProblem], tuple[float, float, float] | None]
"""Given a problem for energy or makespan: a bound on it, and E and C of a schedule (in the given
problem's own energy), or None when time was up before any bound."""


def priced(problem: CoschedulingProblem, price_w: float) -> CoschedulingProblem:
    """The problem for energy whose energy is E + `price_w`·C of this one."""
    more = price_w / problem.gpus
    return replace(
        problem,
        idle_w=problem.idle_w + more,
        applications=tuple(
            Application(
                app.name,
                tuple(
                    Mode(m.gpu_count, m.runtime_s, m.power_per_gpu_w + more, m.dram_util_sum)
                    for m in app.modes
                ),
            )
            for app in problem.applications
        ),
        objective=CoschedulingObjective("energy"),
    )


def least_product(problem: CoschedulingProblem, limits: Limits, solve: Solver) -> float | None:
    """A bound on energy times makespan; None when time was up before there was one."""

    def at(price_w: float) -> Support | None:
        if math.isinf(price_w):
            found = solve(replace(problem, objective=CoschedulingObjective("makespan")))
            return None if found is None else Support(price_w, *found)
        found = solve(priced(problem, price_w))
        if found is None:
            return None
        level, energy, makespan = found
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
    """The least product at a corner of what lies above all lines.

    Corners are looked for among all crossings, as a line may lie below the crossing of others;
    one that is kept although it is none makes the bound lower, not wrong.
    """
    lines = [s for s in known if math.isfinite(s.price_w)]
    shortest = max(s.level for s in known if math.isinf(s.price_w))
    found = math.inf
    for a, b in combinations(known, 2):
        makespan, energy, product = corner(a, b)
        slack = SLACK * (abs(energy) + sum(abs(s.level) for s in (a, b) if s in lines))
        if makespan >= shortest * (1 - SLACK) and all(
            energy + s.price_w * makespan >= s.level - slack for s in lines
        ):
            found = min(found, product)
    return found - 1e-12 * abs(found)


def corner(low: Support, high: Support) -> tuple[float, float, float]:
    """Makespan, energy and their product where the lines of two prices meet."""
    if math.isinf(high.price_w):
        makespan = high.level
    else:
        makespan = (high.level - low.level) / (high.price_w - low.price_w)
    energy = low.level - low.price_w * makespan
    return makespan, energy, makespan * energy


def between(low: Support, high: Support) -> float | None:
    """The price at which both schedules are worth the same, if it is a new one."""
    if None in (low.energy_j, low.makespan_s, high.energy_j, high.makespan_s):
        return None
    assert low.energy_j is not None
    assert low.makespan_s is not None
    assert high.energy_j is not None
    assert high.makespan_s is not None
    shorter = low.makespan_s - high.makespan_s
    dearer = high.energy_j - low.energy_j
    if shorter <= 1e-12 * low.makespan_s or dearer <= 0:
        return None
    price = dearer / shorter
    new = low.price_w * (1 + 1e-9) < price < high.price_w * (1 - 1e-9)
    return price if new else None
