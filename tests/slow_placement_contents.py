"""Everything that fits on one node, and on all of them, one after another; no code of any method.

Plain Python: from demands and sizes to devices in use. A package is in use for every 16 (`cores`)
cores that are not wholly free, two vCPUs each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from optgap.models.placement import PlacementProblem
from optgap.models.placement.tasks import TaskClass


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
        """GPUs, CPU packages beyond those of the empty node, and nodes."""
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


def least_in_use(problem: PlacementProblem, running: list[int]) -> tuple[int, int, int] | None:
    """The least GPUs, packages and nodes that these tasks use together, each by itself."""
    nodes, cores = nodes_of(problem), problem.power.cpu.cores
    tasks = [problem.tasks.task_class(k) for k in running]
    found: list[tuple[int, ...]] = []

    def extend(i: int) -> None:
        if i == len(tasks):
            found.append(tuple(map(sum, zip(*(n.in_use(cores) for n in nodes), strict=True))))
            return
        for node in nodes:
            for gpus in list(node.places(tasks[i])):
                node.put(i, tasks[i], gpus)
                extend(i + 1)
                node.put(i, tasks[i], gpus, -1)

    extend(0)
    if not found:
        return None
    gpus, packages, used = (min(each) for each in zip(*found, strict=True))
    return gpus, packages, used
