"""Brute force as an oracle: the jobs in every order, each on every choice of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.result import Outcome, Status
from optgap.models.times import slack_s
from optgap.solvers.queueing.incumbents import Held, settled


def choices(
    problem: QueueingProblem, order: Sequence[int], held: list[Held], done: int = 0, opened: int = 0
) -> Iterator[list[Held]]:
    """Every choice of nodes for the jobs in this order; those nobody has used yet are alike."""
    if done == len(order):
        yield held
        return
    job, (nodes, g) = order[done], problem.shape
    whole, rest = divmod(int(problem.jobs.gpus[job]), g)
    for full in combinations(range(min(nodes, opened + whole)), whole):
        used = max([opened, *(k + 1 for k in full)])
        for last in range(min(nodes, used + 1)) if rest else (-1,):
            if last not in full:
                held[job] = [(k, g) for k in full] + [(last, rest)] * (last >= 0)
                yield from choices(problem, order, held, done + 1, max(used, last + 1))


def exhaustive(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the best of all schedules of a tiny problem, each job as early as it fits.

    A schedule in which no job can start earlier without moving another is enough, as no objective
    gets worse when a job starts earlier; each is built by adding its jobs by start.
    """
    best, found, jobs = math.inf, None, problem.jobs
    for order in permutations(range(len(problem))):
        for held in choices(problem, order, [[] for _ in order]):
            solution: QueueingSolution = settled(problem, list(order), held)
            value, starts = problem.value(solution.start_s), solution.start_s
            late = starts > jobs.arrival_s + jobs.patience_s + slack_s(starts)
            if value < best and not late.any():
                best, found = value, solution
    if found is None:
        return Outcome(None, Status.INFEASIBLE, bound_by="enumeration")
    return Outcome(found, Status.OPTIMAL, claimed=best, bound=best, bound_by="enumeration")
