"""Brute force: every set of GPUs for every task, equal empty servers and GPUs tried once."""

from __future__ import annotations

from itertools import combinations

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.packing import Packing, packing

MOST_TASKS = 6


class Enumeration:
    """Depth-first over the tasks in order."""

    def __init__(self, pack: Packing, limits: Limits) -> None:
        self.pack, self.limits = pack, limits
        self.places: list[tuple[int, ...]] = []
        self.held: dict[int, list[int]] = {}
        self.best: float | None = None
        self.found: list[tuple[int, ...]] = []
        self.visited = 0
        self.stopped: Termination | None = limits.stop

    def run(self) -> None:
        """Place the next task everywhere it fits."""
        self.visited += 1
        if self.visited % 256 == 0:
            self.stopped = self.limits.stop
        if self.stopped is not None:
            return
        watts = self.pack.total(self.places)
        if self.best is not None and watts >= self.best:
            return  # another task never lowers the power
        if len(self.places) == self.pack.tasks:
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
        pack, seen, found = self.pack, set(), []
        fitting = [g for g in range(pack.gpus) if self._fits(task, g)]
        for gpus in combinations(fitting, int(pack.width[task])):
            servers = {int(pack.gpu_server[g]) for g in gpus}
            if pack.gang and len(servers) > 1:
                continue
            key = tuple(sorted(self._signature(i, gpus) for i in servers))
            if key not in seen:
                seen.add(key)
                found.append(gpus)
        return found

    def _fits(self, task: int, g: int) -> bool:
        total = self.pack.rows[:, [*self.held.get(g, []), task]].sum(axis=1)
        return bool((total <= self.pack.limits[int(self.pack.gpu_kind[g])]).all())

    def _signature(self, server: int, gpus: tuple[int, ...]) -> tuple[object, ...]:
        """A server and what is chosen in it, the same for those that are alike."""
        own = [g for g in range(self.pack.gpus) if int(self.pack.gpu_server[g]) == server]
        state = [(int(self.pack.gpu_kind[g]), tuple(self.held.get(g, [])), g in gpus) for g in own]
        return (float(self.pack.server_w[server]), tuple(sorted(state)))


def exhaustive(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """The best of all placements of a tiny problem.

    Raises
    ------
    InputError: for more than `MOST_TASKS` tasks.
    """
    if len(problem) > MOST_TASKS:
        raise InputError("exhaustive", "tasks", len(problem), f"at most {MOST_TASKS} tasks")
    search = Enumeration(packing(problem, scaled="own"), limits)
    search.run()
    info = {"visited": search.visited}
    solution = search.pack.solution(search.found) if search.best is not None else None
    if search.stopped is not None:
        status = Status.NO_SOLUTION if solution is None else Status.FEASIBLE
        return Outcome(solution, status, search.stopped, search.best, info=info)
    if solution is None:
        return Outcome(None, Status.INFEASIBLE, info=info)
    return Outcome(
        solution,
        Status.OPTIMAL,
        claimed=search.best,
        bound=search.best,
        bound_by="exhaustive search",
        info=info,
    )
