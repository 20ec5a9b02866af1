"""Brute force as an oracle: every set of GPUs for every task, equal empty servers and GPUs once."""

from __future__ import annotations

from itertools import combinations

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.consolidation.instance import Instance, instance_of


class Enumeration:
    """Depth-first over the tasks in order."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.places: list[tuple[int, ...]] = []
        self.held: dict[int, list[int]] = {}
        self.best: float | None = None
        self.found: list[tuple[int, ...]] = []

    def run(self) -> None:
        """Place the next task everywhere it fits."""
        watts = self.instance.total(self.places)
        if self.best is not None and watts >= self.best:
            return  # another task never lowers the power
        if len(self.places) == self.instance.tasks:
            self.best, self.found = watts, list(self.places)
            return
        task = len(self.places)
        for gpus in self._choices(task):
            for g in gpus:
                self.held.setdefault(g, []).append(task)
            self.places.append(gpus)
            self.run()
            self.places.pop()
            for g in gpus:
                self.held[g].pop()

    def _choices(self, task: int) -> list[tuple[int, ...]]:
        instance, seen, found = self.instance, set(), []
        fitting = [g for g in range(instance.gpus) if self._fits(task, g)]
        for gpus in combinations(fitting, int(instance.width[task])):
            servers = {int(instance.gpu_server[g]) for g in gpus}
            if instance.gang and len(servers) > 1:
                continue
            key = tuple(sorted(self._signature(i, gpus) for i in servers))
            if key not in seen:
                seen.add(key)
                found.append(gpus)
        return found

    def _fits(self, task: int, g: int) -> bool:
        total = self.instance.demand[:, [*self.held.get(g, []), task]].sum(axis=1)
        return bool((total <= self.instance.capacity[int(self.instance.gpu_kind[g])]).all())

    def _signature(self, server: int, gpus: tuple[int, ...]) -> tuple[object, ...]:
        """A server and what is chosen in it, the same for those that are alike."""
        own = [g for g in range(self.instance.gpus) if int(self.instance.gpu_server[g]) == server]
        state = [
            (int(self.instance.gpu_kind[g]), tuple(self.held.get(g, [])), g in gpus) for g in own
        ]
        return (float(self.instance.server_w[server]), tuple(sorted(state)))


def exhaustive(
    problem: ConsolidationProblem, *, limits: Limits | None = None, seed: int = 0
) -> Outcome:
    """Return the best of all placements of a tiny problem."""
    search = Enumeration(instance_of(problem))
    search.run()
    if search.best is None:
        return Outcome(None, Status.INFEASIBLE, message="all placements were tried")
    solution = search.instance.solution(search.found)
    best = problem.evaluate(solution).objective
    return Outcome(solution, Status.OPTIMAL, claimed=best, bound=best, bound_by="enumeration")
