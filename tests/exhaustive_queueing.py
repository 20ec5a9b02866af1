"""Brute force as an oracle: the jobs in every order, each on every choice of nodes."""

from __future__ import annotations

import math
from itertools import combinations, permutations

from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.result import Outcome, Status
from optgap.models.times import slack_s
from optgap.solvers.queueing.incumbents import Held, settled

MOST_JOBS = 6
MOST_NODES = 4


class Search:
    """Depth-first over (next job, its nodes): each as early as it fits among those placed.

    A schedule in which no job can start earlier without moving another is enough, as no objective
    gets worse when a job starts earlier; each is built by adding its jobs by start.
    """

    def __init__(self, problem: QueueingProblem) -> None:
        self.problem = problem
        self.best = math.inf
        self.found: QueueingSolution | None = None

    def run(self) -> None:
        """All orders, with all nodes."""
        for order in permutations(range(len(self.problem))):
            self._extend(list(order), [[] for _ in order], 0, 0)

    def _extend(self, order: list[int], held: list[Held], done: int, opened: int) -> None:
        """Choose nodes for the next job; those nobody has used yet are alike."""
        if done == len(order):
            self._judge(order, held)
            return
        job = order[done]
        nodes, g = self.problem.shape
        whole, rest = divmod(int(self.problem.jobs.gpus[job]), g)
        for full in combinations(range(min(nodes, opened + whole)), whole):
            for last in (
                range(min(nodes, max([opened, *(k + 1 for k in full)]) + 1)) if rest else (-1,)
            ):
                if last in full:
                    continue
                held[job] = [(k, g) for k in full] + [(last, rest)] * (last >= 0)
                highest = max([opened, *(k + 1 for k, _ in held[job])])
                self._extend(order, held, done + 1, highest)

    def _judge(self, order: list[int], held: list[Held]) -> None:
        solution = settled(self.problem, order, held)
        jobs = self.problem.jobs
        value = self.problem.value(solution.start_s)
        late = solution.start_s > jobs.arrival_s + jobs.patience_s + slack_s(solution.start_s)
        if value < self.best and not late.any():
            self.best, self.found = value, solution


def exhaustive(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the best of all schedules of a tiny problem."""
    if len(problem) > MOST_JOBS or problem.shape[0] > MOST_NODES:
        raise InputError("exhaustive", "", NoQuote("a large problem"), "a tiny one")
    search = Search(problem)
    search.run()
    if search.found is None:
        return Outcome(None, Status.INFEASIBLE, bound_by="enumeration")
    return Outcome(
        search.found,
        Status.OPTIMAL,
        claimed=search.best,
        bound=search.best,
        bound_by="enumeration",
    )
