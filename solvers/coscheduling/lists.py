"""Schedules of GPU counts and an order of jobs: each as early as the jobs before it allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.limits import Limits
from optgap.models.times import slack_s
from optgap.models.work import WORK
from optgap.solvers.coscheduling.area import energy_j
from optgap.solvers.engines.annealing import walk

Start = tuple[int, int, float]
"""(job, GPU count, start in s)."""
MOST_MOVES, MOVES_TIMES_JOBS = 25_000, 1_500_000
"""Largest number of moves of simulated annealing, and of moves times jobs."""
HEATS = 1 / 10, 1 / 300
"""First and last temperature, of the way to what is enough."""


def in_order(
    problem: CoschedulingProblem, counts: Sequence[int], order: Sequence[int]
) -> list[Start]:
    """No job starts before one that stands earlier in `order`.

    With the jobs of a feasible schedule by start, nothing starts later than it does there.
    """
    now, free = 0.0, problem.gpus
    running: list[tuple[float, int]] = []
    starts: list[Start] = []
    for job in order:
        mode = problem.mode(job, counts[job])
        now = max(now, problem.release_s(job))
        running.sort()
        while running and (
            running[0][0] <= now + slack_s(now)
            or free < mode.gpu_count
            or len(running) >= problem.numa
        ):
            end, held = running.pop(0)
            now, free = max(now, end), free + held
        starts.append((job, mode.gpu_count, now))
        running.append((now + mode.runtime_s, mode.gpu_count))
        free -= mode.gpu_count
    return starts


def greedy(
    problem: CoschedulingProblem, counts: Sequence[int], order: Sequence[int]
) -> list[Start]:
    """At each end and release of a job, start whatever fits, first in `order` first."""
    now, free = 0.0, problem.gpus
    running: list[tuple[float, int]] = []
    waiting = list(order)
    starts: list[Start] = []
    while waiting:
        for job in list(waiting):
            if len(running) >= problem.numa or not free:
                break
            if counts[job] <= free and problem.release_s(job) <= now:
                starts.append((job, counts[job], now))
                running.append((now + problem.mode(job, counts[job]).runtime_s, counts[job]))
                free -= counts[job]
                waiting.remove(job)
        if waiting:
            running.sort()
            later = [end for end, _ in running[:1]]
            if problem.releases:
                later += [r for r in map(problem.release_s, waiting) if r > now]
            until = min(later) + slack_s(min(later))
            now = max(time for time in (*later, *(end for end, _ in running)) if time <= until)
            while running and running[0][0] <= until:
                free += running.pop(0)[1]
    return starts


def value_of(problem: CoschedulingProblem, starts: Sequence[Start]) -> float:
    """Return the objective of a schedule."""
    makespan, modes = 0.0, []
    for job, count, start in starts:
        mode = problem.mode(job, count)
        modes.append(mode)
        makespan = max(makespan, start - problem.epoch_s + mode.runtime_s)
    return problem.value(energy_j(problem, modes, makespan), makespan)


def listed(
    problem: CoschedulingProblem, counts: Sequence[int], first: Sequence[int] = ()
) -> list[Start]:
    """Return the better of longest first and most GPUs first with these GPU counts.

    The jobs of `first`, which must fit side by side, all start at once.
    """
    held = set(first)
    jobs = [job for job in range(len(problem)) if job not in held]
    jobs.sort(key=lambda job: -problem.mode(job, counts[job]).runtime_s)
    orders = (jobs, sorted(jobs, key=lambda job: -counts[job]))
    found = [greedy(problem, counts, [*first, *order]) for order in orders]
    return min(found, key=lambda starts: value_of(problem, starts))


def annealed(
    problem: CoschedulingProblem,
    starts: Sequence[Start],
    rng: np.random.Generator,
    limits: Limits,
    *,
    enough: float,
    first: Sequence[int] = (),
) -> list[Start]:
    """Return the best list schedule on the way of simulated annealing over orders, from `starts`.

    GPU counts stay. A move swaps two jobs of the order or puts one elsewhere; the temperature
    falls from a tenth of the way to `enough`, at which the search ends.
    """
    counts = [0] * len(problem)
    for job, count, _ in starts:
        counts[job] = count
    held = set(first)
    ranked = sorted(starts, key=lambda item: (item[2], item[0]))
    order = [job for job, _, _ in ranked if job not in held]
    value = value_of(problem, starts)

    def neighbour(order: list[int]) -> tuple[list[int], float]:
        other = order.copy()
        i, j = (int(x) for x in rng.integers(len(other), size=2))
        if rng.random() < 0.5:
            other[i], other[j] = other[j], other[i]
        else:
            other.insert(j, other.pop(i))
        limits.spend(WORK.coscheduling_start * len(problem))
        return other, value_of(problem, greedy(problem, counts, [*first, *other]))

    moves = round(limits.effort * min(MOST_MOVES, MOVES_TIMES_JOBS // len(problem)))
    heats = HEATS[0] * (value - enough), HEATS[1] * (value - enough)
    best, least = walk(
        order, value, neighbour, limits,
        tries=moves if len(order) > 1 else 0, heats=heats, rng=rng, enough=enough,
    )  # fmt: skip
    return greedy(problem, counts, [*first, *best]) if least < value else list(starts)
