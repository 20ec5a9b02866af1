"""Times and energies as integers, rounded down where they are none, so that bounds stay bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.coscheduling import CoschedulingProblem

FINEST = 6
LONGEST = 2**38
"""Ticks of a schedule at most."""
ROUNDING = 1e-9
"""Relative; numbers this near to an integer are taken for it."""
LARGEST = 2**58
"""Of what CP-SAT adds up at most; it wants 64-bit integers."""


@dataclass(frozen=True, slots=True)
class Integers:
    """The problem in ticks and quanta.

    Parameters
    ----------
    tick_s: seconds per tick.
    exact: whether every run time is a whole number of ticks, and `idle` leaves nothing out.
    ticks: run time by (application, GPU count), rounded down.
    quantum_j: joules per quantum.
    costs: (P − g·P_idle)·T by (application, GPU count), rounded down.
    idle: quanta per tick of the idle node: P_idle·M, exactly or not at all.
    horizon: ticks that are enough for all jobs one after another, once all have been released.
    jobs: how many.
    largest_cost: of all jobs together, without the signs.
    """

    tick_s: float
    exact: bool
    ticks: dict[tuple[int, int], int]
    quantum_j: float
    costs: dict[tuple[int, int], int]
    idle: int
    horizon: int
    jobs: int
    largest_cost: int

    def unit(self, goal: str) -> float:
        """What one integer of the objective is worth."""
        return self.tick_s if goal == "makespan" else self.quantum_j

    def error(self, goal: str, value: float) -> float:
        """By how much the integers may put an objective of at most `value` too high.

        A time is rounded up by at most `ROUNDING` of itself, and a cost by that or a quantum.
        """
        if goal == "makespan":
            return 2 * ROUNDING * value
        costs = self.largest_cost * self.quantum_j
        each = self.jobs * self.quantum_j + 2 * ROUNDING * costs
        return each + 2 * ROUNDING * value


def integers(problem: CoschedulingProblem, otherwise: float = 1e3) -> Integers:
    """The coarsest power of ten from 1 s to 1 µs that is exact, else `otherwise` ticks per s."""
    apps = sorted(set(problem.jobs))
    modes = {(a, m.gpu_count): m for a in apps for m in problem.applications[a].modes}
    longest = [max(m.runtime_s for m in problem.applications[a].modes) for a in problem.jobs]
    latest = max(problem.releases, default=0.0)
    total = latest + math.fsum(longest)
    per_second, exact = otherwise, False
    times = [m.runtime_s for m in modes.values()] + list(problem.releases)
    for digits in range(FINEST + 1):
        scaled = [t * 10**digits for t in times]
        if all(abs(t - round(t)) <= ROUNDING * t for t in scaled):
            per_second, exact = 10.0**digits, True
            break
    if per_second * total > LONGEST:
        per_second, exact = LONGEST / total, False
    tick_s = 1 / per_second
    ticks = {key: _floor(m.runtime_s * per_second) for key, m in modes.items()}
    horizon = sum(
        max(ticks[a, m.gpu_count] for m in problem.applications[a].modes) for a in problem.jobs
    )
    horizon += math.ceil(latest * per_second)
    highest = max(abs(problem.cost_j(m)) for m in modes.values()) * len(problem)
    highest += problem.idle_w * problem.gpus * (total + tick_s)
    finest = highest / LARGEST
    idle_j = problem.idle_w * problem.gpus * tick_s
    coarsest = min(1e-3, highest * 1e-10, idle_j / 16 or math.inf)
    quantum = max(coarsest, finest)
    idle = math.floor(idle_j / quantum)
    if idle:
        quantum = idle_j / idle
    elif idle_j:  # too little beside the rest to be counted
        exact = False
    costs = {key: _floor(problem.cost_j(m) / quantum) for key, m in modes.items()}
    by_app = [[costs[a, m.gpu_count] for m in problem.applications[a].modes] for a in problem.jobs]
    largest = sum(max(map(abs, mine)) for mine in by_app)
    return Integers(
        tick_s,
        exact,
        ticks,
        quantum,
        costs,
        idle,
        max(1, horizon),
        len(problem),
        largest,
    )


def floor_of_bound(problem: CoschedulingProblem, data: Integers, value: float) -> int:
    """A proven bound in the objective's integers, less what rounding down may have taken away.

    Times that were rounded down shift whole schedules: nothing is known of those.
    """
    goal = problem.objective.goal
    if not data.exact:
        return -(2**60)
    least = value - 1e-6 * abs(value) - 2 * data.error(goal, abs(value))
    return math.floor(least / data.unit(goal)) - 2


def _floor(value: float) -> int:
    """Down to an integer, or to the one that `value` is but for rounding."""
    near = round(value)
    return near if abs(value - near) <= ROUNDING * max(1.0, abs(value)) else math.floor(value)
