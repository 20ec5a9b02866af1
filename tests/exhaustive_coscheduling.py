"""Brute force as an oracle: every GPU count of every job in every order."""

from __future__ import annotations

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.coscheduling.gpus import placed
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.coscheduling.area import cheapest_j, cost_off_j, energy_j, safe_energy


class Search:
    """Depth-first over (next job, GPU count): each as early as it fits among those placed.

    Schedules in which no job can start earlier without moving another are enough, as no
    objective gets worse when a job ends earlier; each is built by adding its jobs by start.
    """

    def __init__(self, problem: CoschedulingProblem) -> None:
        self.problem = problem
        self.best: float | None = None
        self.starts: list[tuple[int, int, float]] = []
        self.placed: list[tuple[int, int, float, float]] = []

    def run(self, left: frozenset[int], cost: float, makespan: float) -> None:
        """Place one of the jobs `left`, and then the others."""
        problem = self.problem
        if not left:
            modes = [problem.application(job).mode(count) for job, count, _, _ in self.placed]
            energy = energy_j(problem, [mode for mode in modes if mode is not None], makespan)
            value = problem.value(energy, makespan)
            if self.best is None or value < self.best:
                self.best = value
                self.starts = [(job, count, start) for job, count, start, _ in self.placed]
            return
        tried = set()
        for job in sorted(left):
            kind = (problem.jobs[job], problem.release_s(job))
            if kind in tried:  # equal to a job tried here before
                continue
            tried.add(kind)
            for mode in problem.application(job).modes:
                start = self._earliest(mode.gpu_count, mode.runtime_s, problem.release_s(job))
                self.placed.append((job, mode.gpu_count, start, start + mode.runtime_s))
                more = cost + problem.cost_j(mode) - cost_off_j(problem, mode)
                last = max(makespan, start - problem.epoch_s + mode.runtime_s)
                if not self._hopeless(left - {job}, more, last):
                    self.run(left - {job}, more, last)
                self.placed.pop()

    def _earliest(self, count: int, runtime: float, release: float) -> float:
        """The first time from `release` on from which the job fits until its end."""
        ends = (end for *_, end in self.placed if end > release)
        for start in sorted({release, *ends}):
            inside = [s for _, _, s, _ in self.placed if start < s < start + runtime]
            if all(self._fits(count, t) for t in (start, *inside)):
                return start
        raise AssertionError("after the last end everything fits")

    def _fits(self, count: int, t: float) -> bool:
        now = [held for _, held, s, e in self.placed if s <= t < e]
        return sum(now) + count <= self.problem.gpus and len(now) < self.problem.numa

    def _hopeless(self, left: frozenset[int], cost: float, makespan: float) -> bool:
        """Whether even the cheapest counts of the jobs left, at once, come to nothing better."""
        if self.best is None:
            return False
        costs = [cheapest_j(self.problem, self.problem.application(job)) for job in left]
        energy = safe_energy(self.problem, [cost, *costs], makespan)
        return self.problem.value(energy, makespan) >= self.best


def exhaustive(problem: CoschedulingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the best of all schedules of a tiny problem."""
    search = Search(problem)
    search.run(frozenset(range(len(problem))), 0.0, 0.0)
    best, solution = search.best, placed(problem, search.starts)
    return Outcome(solution, Status.OPTIMAL, claimed=best, bound=best, bound_by="enumeration")
