"""Times and energies as integers, rounded down where they are none, so that bounds stay bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optgap.models.coscheduling import CoschedulingProblem

FINEST = 6
LONGEST = 2**38
"""Ticks of a schedule at most."""
LONGEST_SQUARED = 2**28
"""The same where they are multiplied with energies."""
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
    horizon: ticks that are enough for all jobs one after another.
    """

    tick_s: float
    exact: bool
    ticks: dict[tuple[int, int], int]
    quantum_j: float
    costs: dict[tuple[int, int], int]
    idle: int
    horizon: int


def integers(problem: CoschedulingProblem) -> Integers:
    """The coarsest power of ten from 1 s to 1 µs that is exact, else 1 ms."""
    apps = sorted(set(problem.jobs))
    modes = {(a, m.gpu_count): m for a in apps for m in problem.applications[a].modes}
    longest = [max(m.runtime_s for m in problem.applications[a].modes) for a in problem.jobs]
    total = math.fsum(longest)
    per_second, exact = 1000.0, False
    for digits in range(FINEST + 1):
        scaled = [m.runtime_s * 10**digits for m in modes.values()]
        if all(abs(t - round(t)) <= 1e-9 * t for t in scaled):
            per_second, exact = 10.0**digits, True
            break
    edp = problem.objective.goal == "edp"
    most = LONGEST_SQUARED if edp else LONGEST
    if per_second * total > most:
        per_second, exact = most / total, False
    tick_s = 1 / per_second
    ticks = {key: _floor(m.runtime_s * per_second) for key, m in modes.items()}
    horizon = sum(
        max(ticks[a, m.gpu_count] for m in problem.applications[a].modes) for a in problem.jobs
    )
    highest = max(abs(problem.cost_j(m)) for m in modes.values()) * len(problem)
    highest += problem.idle_w * problem.gpus * (total + tick_s)
    finest = highest / LARGEST
    if edp:
        finest *= max(1, horizon)
    quantum = max(1e-3, finest)
    idle_j = problem.idle_w * problem.gpus * tick_s
    idle = math.floor(idle_j / quantum)
    if idle:
        quantum = idle_j / idle
    elif idle_j:  # too little beside the rest to be counted
        exact = False
    costs = {key: _floor(problem.cost_j(m) / quantum) for key, m in modes.items()}
    return Integers(tick_s, exact, ticks, quantum, costs, idle, max(1, horizon))


def _floor(value: float) -> int:
    """Down to an integer, or to the one that `value` is but for rounding."""
    near = round(value)
    return near if abs(value - near) <= 1e-9 * max(1.0, abs(value)) else math.floor(value)
