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
        cpu, gpus = node.cpu_milli - node.cpu, [1000 - used for used in node.gpus]
        power = problem.power.cpu_w(node.cpu_milli, cpu) + problem.power.gpu_w(node.model, gpus)
        wasted = node_fragmentation(problem.workload, node.model, cpu, gpus).fragment
        total.append(watts * power + milli * wasted)
    return math.fsum(total)


def optimum(problem: PlacementProblem, only: Sequence[Place] | None = None) -> float | None:
    """The least energy, J, of running every task, or the most GPU demand accepted on average.

    None where not all tasks can run. With `only`, of the one schedule that places tasks so.
    For ``energy`` and ``mean_accepted_gpu``. Every second of the horizon is looked at in steps of
    a half: times have to be multiples of that.
    """
    accepting = problem.objective.goal == "mean_accepted_gpu"
    begin, horizon = problem.over_time.begin_s, problem.over_time.horizon_s
    tasks = [problem.tasks.task_class(k) for k in range(len(problem.tasks))]
    lives = []
    for submit, duration in zip(problem.tasks.submit_s, problem.tasks.duration_s, strict=True):
        first = float(submit) - begin
        lives.append((first, min(first + float(duration), horizon)))
    steps = [0.5 * i for i in range(math.ceil(2 * horizon))]
    best: float | None = None

    def fits(places: list[Place], node: int) -> bool:
        here = [k for k, place in enumerate(places) if place is not None and place[0] == node]
        for now in steps:
            some = [k for k in here if lives[k][0] <= now < lives[k][1]]
            gpus = [0] * int(problem.cluster.gpus[node])
            for k in some:
                for g in places[k][1]:  # type: ignore[index]
                    gpus[g] += tasks[k].gpu_milli
            cpu = sum(tasks[k].cpu_milli for k in some)
            memory = sum(tasks[k].memory_mib for k in some)
            full = cpu > problem.cluster.cpu_milli[node] or max(gpus, default=0) > 1000
            if full or memory > problem.cluster.memory_mib[node]:
                return False
        return True

    def extend(places: list[Place]) -> None:
        nonlocal best
        k = len(places)
        if k == len(tasks):
            if accepting:
                gains = [t.demand_milli * (b - a) for t, (a, b) in zip(tasks, lives, strict=True)]
                value = sum(g for g, p in zip(gains, places, strict=True) if p) / horizon
                best = value if best is None else max(best, value)
            else:
                value = sum(0.5 * watts(places, now) for now in steps)
                best = value if best is None else min(best, value)
            return
        gang = problem.tasks.gang
        before = [places[i] for i in range(k) if gang[i] == gang[k]]
        for n in range(len(problem.cluster)):
            if any(place is None or place[0] == n for place in before):
                continue
            model = problem.cluster.models[n]
            if tasks[k].num_gpu and tasks[k].gpu_spec and model not in tasks[k].gpu_spec.split("|"):
                continue
            for gpus in itertools.combinations(
                range(int(problem.cluster.gpus[n])), tasks[k].num_gpu
            ):
                if only is not None and only[k] != (n, gpus):
                    continue
                more = [*places, (n, gpus)]
                if fits(more, n):
                    extend(more)
        if accepting and not any(before) and (only is None or only[k] is None):
            extend([*places, None])

    def watts(places: list[Place], now: float) -> float:
        total = 0.0
        for n in range(len(problem.cluster)):
            mine = [k for k, place in enumerate(places) if place is not None and place[0] == n]
            some = [k for k in mine if lives[k][0] <= now < lives[k][1]]
            capacity = int(problem.cluster.cpu_milli[n])
            total += cpu_watts(problem, capacity, sum(tasks[k].cpu_milli for k in some))
            busy = {g for k in some for g in places[k][1]}  # type: ignore[index]
            count, model = int(problem.cluster.gpus[n]), problem.cluster.models[n]
            if count:
                total += problem.power.gpu_full_w[model] * len(busy)
                total += problem.power.gpu_idle_w[model] * (count - len(busy))
        return total

    extend([])
    return best


def cpu_watts(problem: PlacementProblem, capacity_milli: int, used_milli: int) -> float:
    """Eq. 1, as printed or counted from cores."""
    cpu, free = problem.power.cpu, capacity_milli - used_milli
    size = 2000 * cpu.cores
    if problem.power.cpu_rule == "eq1":
        return cpu.full_w * math.ceil(used_milli / size) + cpu.idle_w * (free // size)
    cores = math.ceil(capacity_milli / 2000)
    packages = math.ceil(cores / cpu.cores)
    active = math.ceil((cores - free // 2000) / cpu.cores)
    return cpu.full_w * active + cpu.idle_w * (packages - active)
