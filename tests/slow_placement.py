"""Placement by trying everything: fillings of a node, the best of all placements and schedules.

Plain Python from demands and sizes to devices in use; no code of any method or policy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.fragmentation import node_fragmentation
from optgap.models.placement.tasks import TaskClass
from optgap.models.result import Outcome, Status

Place = tuple[int, tuple[int, ...]] | None


@dataclass
class Node:
    """A node and what is on it: how much of each GPU, of the CPU and of the memory is taken."""

    cpu_milli: int
    memory_mib: int
    model: str
    gpus: list[int]
    cpu: int = 0
    memory: int = 0
    tasks: list[int] = field(default_factory=list)

    def places(self, task: TaskClass) -> Iterator[tuple[int, ...]]:
        """Sets of GPUs that the task may have now."""
        short = self.cpu + task.cpu_milli > self.cpu_milli
        if short or self.memory + task.memory_mib > self.memory_mib:
            return
        if task.num_gpu and task.gpu_spec and self.model not in task.gpu_spec.split("|"):
            return
        room = [g for g, used in enumerate(self.gpus) if used + task.gpu_milli <= 1000]
        yield from itertools.combinations(room, task.num_gpu)

    def put(self, k: int, task: TaskClass, gpus: tuple[int, ...], sign: int = 1) -> None:
        """Put task k there, or take it away (-1)."""
        self.cpu += sign * task.cpu_milli
        self.memory += sign * task.memory_mib
        for g in gpus:
            self.gpus[g] += sign * task.gpu_milli
        if sign > 0:
            self.tasks.append(k)
        else:
            self.tasks.pop()

    def in_use(self, cores_each: int) -> tuple[int, int, int]:
        """GPUs, CPU packages beyond those of the empty node, and nodes.

        A package is in use for every 16 (`cores_each`) cores that are not wholly free, two vCPUs
        each.
        """
        cores = math.ceil(self.cpu_milli / 2000)
        busy = [cores - (self.cpu_milli - used) // 2000 for used in (0, self.cpu)]
        empty, now = (math.ceil(b / cores_each) for b in busy)
        return sum(used > 0 for used in self.gpus), now - empty, int(bool(self.tasks))


def nodes_of(problem: PlacementProblem) -> list[Node]:
    """All nodes, empty."""
    cluster = problem.cluster
    return [
        Node(int(cpu), int(memory), model, [0] * int(gpus))
        for cpu, memory, model, gpus in zip(
            cluster.cpu_milli, cluster.memory_mib, cluster.models, cluster.gpus, strict=True
        )
    ]


def fillings(node: Node, tasks: list[TaskClass], most: int, first: int = 0) -> Iterator[Node]:
    """The node with every multiset of up to `most` of these tasks, in every way that fits."""
    yield node
    if most == 0:
        return
    for k in range(first, len(tasks)):
        for gpus in node.places(tasks[k]):
            node.put(k, tasks[k], gpus)
            yield from fillings(node, tasks, most - 1, k)
            node.put(k, tasks[k], gpus, -1)


def contents(
    nodes: list[Node], tasks: list[TaskClass], leave: bool = False, placed: Sequence[Place] = ()
) -> Iterator[Sequence[Place]]:
    """Every way to put these tasks on nodes, which then hold them; with `leave`, or on none.

    Of nodes or sets of GPUs in the same state only the first is tried.
    """
    k, seen = len(placed), set()
    if k == len(tasks):
        yield placed
        return
    for n, node in enumerate(nodes):
        for gpus in list(node.places(tasks[k])):
            amounts = node.cpu_milli, node.memory_mib, node.cpu, node.memory
            taken = tuple(sorted(node.gpus[g] for g in gpus))
            state = node.model, amounts, tuple(sorted(node.gpus)), taken
            if state not in seen:
                seen.add(state)
                node.put(k, tasks[k], gpus)
                yield from contents(nodes, tasks, leave, [*placed, (n, gpus)])
                node.put(k, tasks[k], gpus, -1)
    if leave:
        yield from contents(nodes, tasks, leave, [*placed, None])


def least_in_use(problem: PlacementProblem, running: list[int]) -> tuple[int, ...] | None:
    """The least GPUs, packages and nodes that these tasks use together, each by itself."""
    nodes, cores = nodes_of(problem), problem.power.cpu.cores
    tasks = [problem.tasks.task_class(k) for k in running]
    found = [
        [sum(each) for each in zip(*(node.in_use(cores) for node in nodes), strict=True)]
        for _ in contents(nodes, tasks)
    ]
    return tuple(min(each) for each in zip(*found, strict=True)) if found else None


def exhaustive(
    problem: PlacementProblem, *, limits: Limits | None = None, seed: int = 0
) -> Outcome:
    """The best of all placements of a tiny problem: some 4 nodes and 6 tasks."""
    accepting, nodes = problem.objective.described.sense == "max", nodes_of(problem)
    demand = problem.tasks.demand_milli.tolist()
    tasks = [problem.tasks.task_class(k) for k in range(len(problem.tasks))]
    best: tuple[float, Sequence[Place]] | None = None
    for placed in contents(nodes, tasks, leave=accepting):
        value = float(sum(demand[k] for k, at in enumerate(placed) if at is not None))
        value = value if accepting else cost_of(problem, nodes)
        if best is None or (value > best[0] if accepting else value < best[0]):
            best = value, placed
    if best is None:
        return Outcome(None, Status.INFEASIBLE, message="all placements were tried")
    value, placed = best
    solution = PlacementSolution.of(list(placed))
    return Outcome(solution, Status.OPTIMAL, claimed=value, bound=value, bound_by="enumeration")


def cost_of(problem: PlacementProblem, nodes: list[Node]) -> float:
    """The objective of these nodes as they are, where it is to be minimised."""
    watts, milli = problem.objective.weights
    total = []
    for node in nodes:
        free = [1000 - used for used in node.gpus]
        wasted = node_fragmentation(problem.workload, node.model, node.cpu_milli - node.cpu, free)
        total.append(watts * power_w(problem, node) + milli * wasted.fragment)
    return math.fsum(total)


def power_w(problem: PlacementProblem, node: Node) -> float:
    """Power of a node with what is on it."""
    free = [1000 - used for used in node.gpus]
    cpu_w = problem.power.cpu_w(node.cpu_milli, node.cpu_milli - node.cpu)
    return cpu_w + problem.power.gpu_w(node.model, free)


def optimum(problem: PlacementProblem) -> float | None:
    """The least energy, J, of running every task, or the most GPU demand accepted on average.

    None where not all tasks can run. For ``energy`` and ``mean_accepted_gpu``. Every second of
    the horizon is looked at in steps of a half: times have to be multiples of that.
    """
    accepting = problem.objective.goal == "mean_accepted_gpu"
    begin, horizon = problem.over_time.begin_s, problem.over_time.horizon_s
    tasks = [problem.tasks.task_class(k) for k in range(len(problem.tasks))]
    first = [float(submit) - begin for submit in problem.tasks.submit_s]
    last = [
        min(a + float(b), horizon) for a, b in zip(first, problem.tasks.duration_s, strict=True)
    ]
    steps = [0.5 * i for i in range(math.ceil(2 * horizon))]
    found = []

    def at(now: float, places: Sequence[Place]) -> list[Node]:
        nodes = nodes_of(problem)
        for k, place in enumerate(places):
            if place is not None and first[k] <= now < last[k]:
                nodes[place[0]].put(k, tasks[k], place[1])
        return nodes

    def extend(places: list[Place]) -> None:
        k = len(places)
        if k == len(tasks) and accepting:
            run = [i for i, place in enumerate(places) if place]
            found.append(sum(tasks[i].demand_milli * (last[i] - first[i]) for i in run) / horizon)
            return
        if k == len(tasks):
            nodes = itertools.chain(*(at(now, places) for now in steps))
            found.append(sum(0.5 * power_w(problem, node) for node in nodes))
            return
        during = [at(now, places) for now in steps if first[k] <= now < last[k]]
        for n in range(len(problem.cluster)):
            room = (set(nodes[n].places(tasks[k])) for nodes in during)
            for gpus in sorted(set.intersection(*room)):
                extend([*places, (n, gpus)])
        if accepting:
            extend([*places, None])

    extend([])
    return (max if accepting else min)(found, default=None)
