"""Brute force as an oracle: every set of GPUs for every task, equal empty servers and GPUs once."""

from __future__ import annotations

import math
from itertools import combinations

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.consolidation.instance import Instance, instance_of

Held = list[list[int]]
"""The tasks on each GPU."""


def choices(instance: Instance, held: Held, task: int) -> list[tuple[int, ...]]:
    """Sets of GPUs for a task beside the others; of those that are alike the first."""

    def fits(g: int) -> bool:
        total = instance.demand[:, [*held[g], task]].sum(axis=1)
        return bool((total <= instance.capacity[int(instance.gpu_kind[g])]).all())

    def state(server: int, chosen: tuple[int, ...]) -> tuple[object, ...]:
        own = [g for g in range(instance.gpus) if int(instance.gpu_server[g]) == server]
        each = sorted((int(instance.gpu_kind[g]), tuple(held[g]), g in chosen) for g in own)
        return float(instance.server_w[server]), tuple(each)

    found: dict[tuple[object, ...], tuple[int, ...]] = {}
    for gpus in combinations(filter(fits, range(instance.gpus)), int(instance.width[task])):
        servers = {int(instance.gpu_server[g]) for g in gpus}
        if len(servers) == 1 or not instance.gang:
            found.setdefault(tuple(sorted(state(server, gpus) for server in servers)), gpus)
    return list(found.values())


def exhaustive(
    problem: ConsolidationProblem, *, limits: Limits | None = None, seed: int = 0
) -> Outcome:
    """Return the best of all placements of a tiny problem."""
    instance = instance_of(problem)
    held: Held = [[] for _ in range(instance.gpus)]
    places: list[tuple[int, ...]] = []
    best, found = math.inf, None

    def place() -> None:
        nonlocal best, found
        watts = instance.total(places)
        if watts >= best:
            return  # another task never lowers the power
        task = len(places)
        if task == instance.tasks:
            best, found = watts, list(places)
            return
        for gpus in choices(instance, held, task):
            for g in gpus:
                held[g].append(task)
            places.append(gpus)
            place()
            places.pop()
            for g in gpus:
                held[g].pop()

    place()
    if found is None:
        return Outcome(None, Status.INFEASIBLE, message="all placements were tried")
    solution = instance.solution(found)
    best = problem.evaluate(solution).objective
    return Outcome(solution, Status.OPTIMAL, claimed=best, bound=best, bound_by="enumeration")
