"""Nodes by their contents: tasks put one by one where they cost least, and named again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from optgap.models.placement import PlacementSolution
from optgap.models.placement.tasks import TaskClass
from optgap.solvers.placement.aggregate import Aggregate, Contents

Node = tuple[int, Contents]
"""A node type's index and what one node of it carries."""


def largest(task: TaskClass) -> tuple[float, ...]:
    """Rank the largest first."""
    return -task.demand_milli, -task.cpu_milli, -task.memory_mib


def inserted(aggregate: Aggregate, nodes: list[Node], may_leave_out: bool) -> list[Node] | None:
    """Put every task not served yet where it costs least, the largest first; None if one fits
    nowhere and must not be left out."""
    left, idle = aggregate.demand_counter(weightless=True), aggregate.count.copy()
    for t, contents in nodes:
        left.subtract(contents.tasks)
        idle[t] -= 1
    everywhere = list(nodes) + [(t, Contents()) for t, n in enumerate(idle) for _ in range(n)]

    for c in sorted(+left, key=lambda c: largest(aggregate.classes[c])):
        for _ in range(left[c]):
            if not _insert(aggregate, everywhere, c) and not may_leave_out:
                return None
    return [node for node in everywhere if node[1].tasks]


def _insert(aggregate: Aggregate, nodes: list[Node], c: int) -> bool:
    best: tuple[float, int, Contents] | None = None
    tried: set[Node] = set()
    for k, (t, contents) in enumerate(nodes):
        if (t, contents) in tried:
            continue
        tried.add((t, contents))
        for wider in _with_task(contents, c, int(aggregate.num_gpu[c])):
            if not aggregate.feasible(t, wider):
                continue
            rise = aggregate.cost(t, wider) - aggregate.cost(t, contents)
            if best is None or rise < best[0]:
                best = (rise, k, wider)
    if best is None:
        return False
    nodes[best[1]] = (nodes[best[1]][0], best[2])
    return True


def _with_task(contents: Contents, c: int, num_gpu: int) -> Iterable[Contents]:
    """Yield the contents with one more task of class `c`, on every GPU it could share."""
    if num_gpu == 0:
        lone = tuple(sorted((*contents.cpu_only, c)))
        yield Contents(contents.shares, contents.multi, lone)
        return
    if num_gpu > 1:
        yield Contents(contents.shares, tuple(sorted((*contents.multi, c))), contents.cpu_only)
        return
    for g in [*range(len(contents.shares)), None]:
        shares = list(contents.shares)
        if g is None:
            shares.append((c,))
        else:
            shares[g] = tuple(sorted((*shares[g], c)))
        yield Contents(tuple(sorted(shares)), contents.multi, contents.cpu_only)


def expand(aggregate: Aggregate, nodes: Iterable[Node]) -> PlacementSolution:
    """Name the nodes, GPUs and tasks: arrivals of a class are handed out in order."""
    problem = aggregate.problem
    waiting: dict[int, list[int]] = defaultdict(list)
    for k in reversed(range(len(problem.tasks))):
        waiting[int(problem.tasks.class_of[k])].append(k)
    free: dict[int, list[int]] = defaultdict(list)
    for n in sorted(range(len(problem.cluster)), key=lambda n: -int(problem.ranks[n])):
        free[int(problem.cluster.type_of[n])].append(n)
    node = np.full(len(problem.tasks), -1, dtype=np.int64)
    mask = np.zeros(len(problem.tasks), dtype=np.int64)
    for t, contents in nodes:
        n = free[t].pop()
        gpu = 0
        for c in contents.multi:
            k = waiting[c].pop()
            node[k] = n
            mask[k] = ((1 << int(aggregate.num_gpu[c])) - 1) << gpu
            gpu += int(aggregate.num_gpu[c])
        for share in contents.shares:
            for c in share:
                k = waiting[c].pop()
                node[k] = n
                mask[k] = 1 << gpu
            gpu += 1
        for c in contents.cpu_only:
            node[waiting[c].pop()] = n
    return PlacementSolution.of_arrays(node, mask)


def counted(aggregate: Aggregate, solution: PlacementSolution) -> list[Node]:
    """Return the nodes of a placement with what each carries: `expand` backwards."""
    problem, num_gpu = aggregate.problem, aggregate.num_gpu
    held: dict[int, list[int]] = defaultdict(list)
    for k, n in enumerate(solution.node.tolist()):
        held[n].append(k)
    nodes: list[Node] = []
    for n, tasks in held.items():
        shares: dict[int, list[int]] = defaultdict(list)
        wide: dict[bool, list[int]] = {True: [], False: []}
        for k in tasks:
            c = int(problem.tasks.class_of[k])
            row = shares[int(solution.gpu_mask[k])] if num_gpu[c] == 1 else wide[num_gpu[c] > 1]
            row.append(c)
        gpus = sorted(tuple(sorted(classes)) for classes in shares.values())
        contents = Contents(tuple(gpus), *(tuple(sorted(wide[key])) for key in (True, False)))
        nodes.append((int(problem.cluster.type_of[n]), contents))
    return nodes
