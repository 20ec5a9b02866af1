"""A first placement for the exact methods: greedy, in a few orders, the best one kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from optgap.models.placement import PlacementSolution
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.tasks import TaskClass
from optgap.solvers.placement.aggregate import state_cost
from optgap.solvers.placement.exact.code import claim
from optgap.solvers.placement.exact.counted import CountedModel
from optgap.solvers.placement.exact.tables import Counted


@dataclass(slots=True)
class Room:
    """What is left on one node."""

    cpu_milli: int
    memory_mib: int
    gpus: list[int]
    tasks: int = 0


@dataclass(slots=True)
class Greedy:
    """Places one task after another where the objective grows least.

    Ties go to the node with the least CPU left, then to the fullest GPU.
    """

    counted: Counted
    costs: dict[tuple[int, int, tuple[int, ...]], float] = field(default_factory=dict)

    def place(self, order: Iterable[int]) -> PlacementSolution:
        """Tasks that find no room are left out."""
        cluster = self.counted.problem.cluster
        rooms = [
            Room(
                int(cluster.cpu_milli[n]),
                int(cluster.memory_mib[n]),
                [1000] * int(cluster.gpus[n]),
            )
            for n in range(len(cluster))
        ]
        placed: list[tuple[int, tuple[int, ...]] | None] = [None] * len(self.counted.problem.tasks)
        for k in order:
            placed[k] = self._best(self.counted.problem.tasks.task_class(k), rooms)
        return PlacementSolution.of(placed)

    def _best(self, task: TaskClass, rooms: list[Room]) -> tuple[int, tuple[int, ...]] | None:
        best: tuple[float, int, int] | None = None
        chosen: tuple[int, tuple[int, ...]] | None = None
        for n, room in enumerate(rooms):
            for gpus in self._options(task, n, room):
                before = self._cost(n, room.cpu_milli, room.gpus)
                after = list(room.gpus)
                for g in gpus:
                    after[g] -= task.gpu_milli
                cpu = room.cpu_milli - task.cpu_milli
                grows = self._cost(n, cpu, after) - before
                key = (round(grows, 6), cpu, after[gpus[0]] if gpus else 0)
                if best is None or key < best:
                    best, chosen = key, (n, gpus)
        if chosen is not None:
            room = rooms[chosen[0]]
            room.cpu_milli -= task.cpu_milli
            room.memory_mib -= task.memory_mib
            room.tasks += 1
            for g in chosen[1]:
                room.gpus[g] -= task.gpu_milli
        return chosen

    def _options(self, task: TaskClass, n: int, room: Room) -> list[tuple[int, ...]]:
        node = self.counted.types[int(self.counted.problem.cluster.type_of[n])]
        if not self.counted.problem.fits_empty(task, node) or room.tasks >= TASKS_PER_NODE:
            return []
        if room.cpu_milli < task.cpu_milli or room.memory_mib < task.memory_mib:
            return []
        fitting = [g for g, free in enumerate(room.gpus) if free >= task.gpu_milli]
        if task.num_gpu != 1:
            return [tuple(fitting[: task.num_gpu])] if len(fitting) >= task.num_gpu else []
        return [(room.gpus.index(free),) for free in sorted({room.gpus[g] for g in fitting})]

    def _cost(self, n: int, free_cpu: int, gpus: list[int]) -> float:
        counted = self.counted
        t = int(counted.problem.cluster.type_of[n])
        key = (t, free_cpu, tuple(sorted(gpus)))
        if key not in self.costs:
            weights = counted.power_weight, counted.frag_weight
            self.costs[key] = state_cost(counted.problem, weights, counted.types[t], free_cpu, gpus)
        return self.costs[key]


Key = tuple[float, ...]


def _orders() -> tuple[Callable[[TaskClass], Key], ...]:
    """What is hardest to place goes first, by three notions of hard."""
    return (
        lambda c: (-c.num_gpu, not c.gpu_spec, -c.gpu_milli, -c.cpu_milli),
        lambda c: (not c.gpu_spec, -c.num_gpu, -c.cpu_milli, -c.gpu_milli),
        lambda c: (-c.demand_milli / 1000 - c.cpu_milli / 12000, -c.memory_mib),
    )


def first_solution(model: CountedModel) -> PlacementSolution | None:
    """The best of a few greedy placements; None when none of them places every task."""
    counted, problem = model.counted, model.counted.problem
    tasks = [problem.tasks.task_class(k) for k in range(len(problem.tasks))]
    greedy = Greedy(counted)
    best: tuple[float, PlacementSolution] | None = None
    for key in _orders():
        solution = greedy.place(sorted(range(len(tasks)), key=lambda k: (key(tasks[k]), k)))
        if not (counted.accepting or problem.serves_all(solution)):
            continue
        cost = claim(model, solution) * (-1 if counted.accepting else 1)
        if best is None or cost < best[0]:
            best = cost, solution
    return None if best is None else best[1]
