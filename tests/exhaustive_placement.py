"""Brute force: every placement up to the symmetries that cannot matter, evaluated node by node."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.fragmentation import node_fragmentation
from optgap.models.result import Outcome, Status


@dataclass(slots=True)
class State:
    """One node in the search: what is left, and who is on it."""

    model: str
    capacity_milli: int
    free_cpu: int
    free_memory: int
    gpu_free: list[int] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int, int, int, tuple[int, ...]]:
        return (
            self.model,
            self.capacity_milli,
            self.free_cpu,
            self.free_memory,
            tuple(self.gpu_free),
        )


class Search:
    """Depth-first over the tasks in order of arrival."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.maximise = problem.objective.described.sense == "max"
        cluster = problem.cluster
        self.nodes = [
            State(
                cluster.models[n],
                int(cluster.cpu_milli[n]),
                int(cluster.cpu_milli[n]),
                int(cluster.memory_mib[n]),
                [1000] * int(cluster.gpus[n]),
            )
            for n in range(len(cluster))
        ]
        self.placed: list[tuple[int, tuple[int, ...]] | None] = [None] * len(problem.tasks)
        self.best: float | None = None
        self.solution: PlacementSolution | None = None

    def run(self, k: int = 0) -> None:
        """Try every place for task `k` and those after it."""
        if k == len(self.placed):
            self._leaf()
            return
        task = self.problem.tasks.task_class(k)
        for n, gpus in self._places(k):
            node = self.nodes[n]
            node.free_cpu -= task.cpu_milli
            node.free_memory -= task.memory_mib
            for g in gpus:
                node.gpu_free[g] -= task.gpu_milli
            self.placed[k] = (n, gpus)
            self.run(k + 1)
            self.placed[k] = None
            node.free_cpu += task.cpu_milli
            node.free_memory += task.memory_mib
            for g in gpus:
                node.gpu_free[g] += task.gpu_milli
        if self.maximise:
            self.run(k + 1)

    def _places(self, k: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Where task `k` fits; of nodes or GPUs in the same state only the first."""
        task = self.problem.tasks.task_class(k)
        seen = set()
        for n, node in enumerate(self.nodes):
            if node.key in seen:
                continue
            seen.add(node.key)
            if node.free_cpu < task.cpu_milli or node.free_memory < task.memory_mib:
                continue
            if task.num_gpu == 0:
                yield n, ()
                continue
            if not task.accepts(node.model):
                continue
            fitting = [g for g, free in enumerate(node.gpu_free) if free >= task.gpu_milli]
            if task.num_gpu > 1:
                if len(fitting) >= task.num_gpu:
                    yield n, tuple(fitting[: task.num_gpu])
                continue
            for free in sorted({node.gpu_free[g] for g in fitting}):
                yield n, (node.gpu_free.index(free),)

    def _leaf(self) -> None:
        value = self._objective()
        if self.best is None or (value > self.best if self.maximise else value < self.best):
            self.best = value
            self.solution = PlacementSolution.of(self.placed)

    def _objective(self) -> float:
        objective = self.problem.objective
        if self.maximise:
            demand = self.problem.tasks.demand_milli
            return float(sum(int(demand[k]) for k, at in enumerate(self.placed) if at is not None))
        watts, milli = objective.weights
        return math.fsum(
            watts * self._watts(node)
            + milli
            * node_fragmentation(
                self.problem.workload, node.model, node.free_cpu, node.gpu_free
            ).fragment
            for node in self.nodes
        )

    def _watts(self, node: State) -> float:
        power = self.problem.power
        return power.cpu_w(node.capacity_milli, node.free_cpu) + power.gpu_w(
            node.model, node.gpu_free
        )


def exhaustive(
    problem: PlacementProblem, *, limits: Limits | None = None, seed: int = 0
) -> Outcome:
    """The best of all placements of a tiny problem: some 4 nodes and 6 tasks."""
    search = Search(problem)
    search.run()
    if search.solution is None:
        return Outcome(None, Status.INFEASIBLE, message="all placements were tried")
    return Outcome(
        search.solution,
        Status.OPTIMAL,
        claimed=search.best,
        bound=search.best,
        bound_by="exhaustive search",
    )
