"""Times and energies as integers, rounded down where they are none, so that bounds stay bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.times import ROUNDING, TOLERANCE_S

FINEST = 6
LONGEST = 2**38
"""Ticks of a schedule at most."""
NEAR = 1e-9
"""Relative; numbers this near to an integer are taken for it."""
WHOLE, SHARE = 0.05, 1e-6
"""Ticks that a time may be off, within the tolerance of times, and count as a whole number; for a
run time no more than this share of itself."""
LARGEST = 2**58
"""Largest sum in CP-SAT, which takes 64-bit integers."""


@dataclass(frozen=True, slots=True)
class Integers:
    """The problem in ticks and quanta.

    Parameters
    ----------
    tick_s: seconds per tick.
    exact: whether every time is a whole number of ticks but for a tolerance (a clock that counts
        from 1970 rounds them), and `idle` leaves nothing out.
    late_s: by how much a makespan may be off because of that: by as much as a release, and as
        every run time one after another.
    ticks, releases: run time by (application, GPU count), and release by job, counted from the
        first one, rounded down.
    quantum_j: joules per quantum.
    costs: (P − g·P_idle)·T by (application, GPU count), rounded down.
    idle: quanta per tick of the idle node: P_idle·M, exactly or not at all.
    idle_w: P_idle·M, W.
    horizon: ticks that are enough for all jobs one after another, once all have been released.
    jobs: how many.
    largest_cost: of all jobs together, without the signs.
    """

    tick_s: float
    exact: bool
    late_s: float
    ticks: dict[tuple[int, int], int]
    releases: tuple[int, ...]
    quantum_j: float
    costs: dict[tuple[int, int], int]
    idle: int
    idle_w: float
    horizon: int
    jobs: int
    largest_cost: int

    def unit(self, goal: str) -> float:
        """Return what one integer of the objective is worth."""
        return self.tick_s if goal == "makespan" else self.quantum_j

    def error(self, goal: str, value: float) -> float:
        """Return by how much the integers may put an objective of at most `value` too high.

        A time is rounded up by at most `NEAR` of itself beside `late_s`, and a cost by `NEAR` of
        itself or a quantum.
        """
        if goal == "makespan":
            return 2 * NEAR * value + self.late_s
        costs = self.largest_cost * self.quantum_j
        each = self.jobs * self.quantum_j + 2 * NEAR * costs
        return each + 2 * NEAR * value + self.idle_w * self.late_s


def integers(problem: CoschedulingProblem, otherwise: float = 1e3) -> Integers:
    """Return the coarsest exact power of ten from 1 s to 1 µs, else `otherwise` ticks per s."""
    apps = sorted(set(problem.jobs))
    modes = {(a, m.gpu_count): m for a in apps for m in problem.applications[a].modes}
    longest = [max(m.runtime_s for m in problem.applications[a].modes) for a in problem.jobs]
    delays = [problem.delay_s(job) for job in range(len(problem))]
    latest = max(delays)
    total = latest + math.fsum(longest)
    per_second, exact, late_s = otherwise, False, 0.0
    lengths = [m.runtime_s for m in modes.values()]
    for digits in range(FINEST + 1):
        scaled = 10.0**digits
        off = [abs(t - round(t * scaled) / scaled) for t in (*lengths, *delays)]
        near = min(TOLERANCE_S, WHOLE / scaled)
        most = [min(near, t * SHARE) for t in lengths] + [near + ROUNDING * t for t in delays]
        if all(x <= y for x, y in zip(off, most, strict=True)):
            per_second, exact = scaled, True
            late_s = max(off[len(lengths) :]) + len(problem) * max(off[: len(lengths)])
            break
    if per_second * total > LONGEST:
        per_second, exact, late_s = LONGEST / total, False, 0.0
    tick_s = 1 / per_second
    down = round if exact else _floor
    ticks = {key: down(m.runtime_s * per_second) for key, m in modes.items()}
    releases = tuple(down(delay * per_second) for delay in delays)
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
        late_s,
        ticks,
        releases,
        quantum,
        costs,
        idle,
        problem.idle_w * problem.gpus,
        max(1, horizon),
        len(problem),
        largest,
    )


def floor_of_bound(problem: CoschedulingProblem, data: Integers, value: float) -> int:
    """Return a proven bound in the objective's integers, less the error of rounding down.

    Times that were rounded down shift whole schedules: nothing is known of those.
    """
    goal = problem.objective.goal
    if not data.exact:
        return -(2**60)
    least = value - 1e-6 * abs(value) - 2 * data.error(goal, abs(value))
    return math.floor(least / data.unit(goal)) - 2


def minimise(
    model: Any,
    problem: CoschedulingProblem,
    data: Integers,
    cost: Any,
    *,
    makespan: Any,
    known: float,
) -> None:
    """Have `model` minimise energy or makespan, at least what is `known` of it.

    Energy times makespan is not left to CP-SAT: 9.15 calls products optimal that are not.

    Parameters
    ----------
    cost: Σ (P − g·P_idle)·T of the chosen modes, in quanta.
    makespan: C, in ticks.
    """
    goal = problem.objective.goal
    target = makespan
    if goal != "makespan":
        target = cost + data.idle * makespan
    model.add(target >= floor_of_bound(problem, data, known))
    model.minimize(target)


def _floor(value: float) -> int:
    """Down to an integer, or to the one that `value` is but for rounding."""
    near = round(value)
    return near if abs(value - near) <= NEAR * max(1.0, abs(value)) else math.floor(value)
