"""Offline placement matched to the present one so that few tasks move, and the order of moves.

The offline method finds contents for the nodes of a type, and any such node can have any of these.
An assignment therefore puts each content on the node that has most of it already. The result is a
list of moves that all fit. If tasks block one another, one of them waits on a third node.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import BoolArray, IntArray
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.migrations import MigrationProblem, Move
from optgap.models.placement.power import CORE_MILLI
from optgap.solvers.placement.migrations.state import State

MOST_HOPS = 3
"""Largest number of times that a task makes way before it reaches its target."""


@dataclass(frozen=True)
class Part:
    """Part of a cluster: some nodes, and their tasks that are not load.

    Parameters
    ----------
    problem: these nodes, less the CPU and memory of their load, and these tasks.
    nodes, tasks: their indices in the cluster.
    here: present nodes of the tasks.
    """

    problem: PlacementProblem
    nodes: IntArray
    tasks: IntArray
    here: PlacementSolution


def _load(migration: MigrationProblem) -> BoolArray:
    """Return the tasks (T,) without GPUs that must stay, the load of their nodes."""
    load: BoolArray = ~migration.movable & (migration.problem.tasks.num_gpu == 0)
    return load


def free_part(migration: MigrationProblem) -> Part | None:
    """Return the nodes on which any equal tasks may be exchanged, with their tasks.

    The result is None if no task is on such a node.
    """
    load = _load(migration)
    held = migration.closed.copy()
    confined = ~migration.movable | (migration.node_set_of >= 0)
    held[migration.current.node[confined & ~load]] = True
    return _part(migration, np.flatnonzero(~held))


def without_load(migration: MigrationProblem) -> tuple[Part, float] | None:
    """Return all nodes without their load, and the least W that the load adds.

    All other tasks may go anywhere. The least further power that a node draws with its load may be
    added to a bound. The result is None if there is nothing but load.
    """
    cluster, power = migration.problem.cluster, migration.problem.power
    load = _held(migration, migration.problem.tasks.cpu_milli)
    rest = _part(migration, np.arange(len(cluster)))
    if rest is None:
        return None
    columns = cluster.cpu_milli, load, rest.problem.cluster.cpu_milli
    added = 0.0
    for row, nodes in Counter(zip(*(c.tolist() for c in columns), strict=True)).items():
        size, used, left = row
        edges = (*(e - used for e in power.cpu_edges(size)), *power.cpu_edges(left))
        # both are constant between edges: what others use is tried at each and behind it
        tried = {0, *edges, *(edge + 1 for edge in edges)}
        added += nodes * min(
            power.cpu_w(size, size - used - u) - power.cpu_w(left, left - u)
            for u in tried
            if 0 <= u <= size - used
        )
    return rest, added


def _held(migration: MigrationProblem, of: IntArray) -> IntArray:
    """Return what load takes on each node, (N,), given the amounts `of` all tasks."""
    load = _load(migration)
    held = np.zeros(len(migration.problem.cluster), dtype=np.int64)
    np.add.at(held, migration.current.node[load], of[load])
    return held


def _part(migration: MigrationProblem, nodes: IntArray) -> Part | None:
    """Return these nodes less their load, with their tasks; None without tasks.

    A node of whole cores gets a milli-vCPU more than is left. Its CPU packages then equal those of
    the node with its load, whose cores are counted from the free amount.
    """
    problem, current = migration.problem, migration.current
    cluster, of, load = problem.cluster, problem.tasks, _load(migration)
    tasks = np.flatnonzero(np.isin(current.node, nodes) & ~load)
    if not len(tasks):
        return None
    place = np.full(len(cluster), -1)
    place[nodes] = np.arange(len(nodes))
    here = PlacementSolution.of_arrays(place[current.node[tasks]], current.gpu_mask[tasks])
    used = _held(migration, of.cpu_milli)
    cpu = cluster.cpu_milli - used
    cpu += (used > 0) & (cpu % CORE_MILLI == 0)
    memory = cluster.memory_mib - _held(migration, of.memory_mib)
    names, models = ([column[n] for n in nodes] for column in (cluster.names, cluster.models))
    rest = Cluster.of(names, cpu[nodes], memory[nodes], cluster.gpus[nodes], models)
    ranks = np.arange(len(nodes))
    part = replace(problem, cluster=rest, tasks=of.take(tasks.tolist()), ranks=ranks)
    return Part(part, nodes, tasks, here)


def laid_over(part: Part, found: PlacementSolution) -> PlacementSolution:
    """Return `found` with equal nodes, GPUs and tasks exchanged to resemble `here`.

    The result costs exactly what `found` costs, and moves fewer tasks.
    """
    problem, here = part.problem, part.here
    class_of, num_gpu = problem.tasks.class_of.tolist(), problem.tasks.num_gpu.tolist()
    node, mask = np.full(len(here), -1), np.zeros(len(here), dtype=np.int64)
    members: tuple[dict[int, list[int]], ...] = (defaultdict(list), defaultdict(list))
    for by_node, solution in zip(members, (here, found), strict=True):
        for k, n in enumerate(solution.node.tolist()):
            by_node[n].append(k)
    slots: list[tuple[int, int, int]] = []  # class, node and GPUs (bits) that wait for a task
    for n, like in _matched(problem, here, found):
        left: dict[int, list[int]] = defaultdict(list)
        for k in members[0][n]:
            left[class_of[k]].append(k)
        wanted = members[1][like]
        place: dict[int, int] = {}  # GPU in `found` -> GPU of this node
        for w in wanted:
            if num_gpu[w] > 1 and left[class_of[w]]:
                k = left[class_of[w]].pop()
                node[k], mask[k] = n, here.gpu_mask[k]
                place.update(zip(found.gpus(w), here.gpus(k), strict=True))
        unmet = [w for w in wanted if num_gpu[w] < 2 or found.gpus(w)[0] not in place]
        one = [k for k in members[0][n] if num_gpu[k] == 1]
        gpus = range(int(problem.cluster.gpus[n]))
        place |= _gpu_pairs(
            {g: Counter(class_of[w] for w in unmet if found.gpu_mask[w] == 1 << g) for g in gpus},
            {g: Counter(class_of[k] for k in one if here.gpu_mask[k] == 1 << g) for g in gpus},
            place,
        )
        for w in unmet:
            bits, same = sum(1 << place[g] for g in found.gpus(w)), left[class_of[w]]
            stay = next((k for k in same if here.gpu_mask[k] == bits), None)
            if stay is None:
                slots.append((class_of[w], n, bits))
            else:
                same.remove(stay)
                node[stay], mask[stay] = n, bits
    pool: dict[int, list[int]] = defaultdict(list)
    for k in np.flatnonzero(node < 0).tolist():
        pool[class_of[k]].append(k)
    for c, n, bits in slots:
        k = pool[c].pop()
        node[k], mask[k] = n, bits
    return PlacementSolution.of_arrays(node, mask)


def _gpu_pairs(
    want: dict[int, Counter[int]], have: dict[int, Counter[int]], known: dict[int, int]
) -> dict[int, int]:
    """Return, for each GPU in `found`, the GPU of the node that keeps most of its tasks."""
    from scipy.optimize import linear_sum_assignment

    rows = [g for g in want if g not in known]
    free = [g for g in have if g not in known.values()]
    overlap = np.array([[(want[r] & have[c]).total() for c in free] for r in rows])
    if not overlap.size:
        return {}
    return {rows[i]: free[j] for i, j in zip(*linear_sum_assignment(-overlap), strict=True)}


def _matched(
    problem: PlacementProblem, current: PlacementSolution, found: PlacementSolution
) -> list[tuple[int, int]]:
    """Return pairs of nodes of one type: the first gets the tasks of `found` on the second."""
    from scipy.optimize import linear_sum_assignment

    cluster, classes = problem.cluster, len(problem.tasks.classes)
    counts = []
    for solution in (current, found):
        table = np.zeros((len(cluster), classes), dtype=np.int16)
        np.add.at(table, (solution.node, problem.tasks.class_of), 1)
        counts.append(table)
    pairs: list[tuple[int, int]] = []
    for t in range(len(cluster.types)):
        nodes = np.flatnonzero(cluster.type_of == t)
        overlap = np.zeros((len(nodes), len(nodes)))
        for have, want in zip(*(table[nodes].T for table in counts), strict=True):
            if have.any() and want.any():
                overlap += np.minimum.outer(have, want)
        rows, columns = linear_sum_assignment(-overlap)
        pairs += zip(nodes[rows].tolist(), nodes[columns].tolist(), strict=True)
    return pairs


def in_order(migration: MigrationProblem, target: PlacementSolution, limits: Limits) -> list[Move]:
    """Return moves from the current placement towards `target`, each of which fits.

    A task that must make way and has no place yet waits on other nodes, at most `MOST_HOPS` times.
    If tasks still block one another, the moves end before the target.
    """
    state, moves = State(migration), list[Move]()
    tasks, hops = state.tasks, Counter[int]()
    moved = migration.moved(target).tolist()
    waiting: dict[int, dict[int, None]] = defaultdict(dict)  # tasks by the node that they go to
    for k in moved:
        waiting[int(target.node[k])][k] = None
    changed = deque(waiting)
    smallest = sorted(moved, key=lambda k: (tasks.demand_milli[k], tasks.cpu_milli[k], k))

    def go(k: int, was: int, n: int, mask: int) -> None:
        state.put(k, n, mask)
        moves.append(Move(k, was, n, mask))
        if waiting.get(was):
            changed.append(was)

    def made_way() -> bool:
        """Move a blocking task to a third node, the smallest first; return whether one moved."""
        for k in sorted(smallest, key=hops.__getitem__):
            here = int(state.node[k])
            if (
                hops[k] == MOST_HOPS
                or k not in waiting[int(target.node[k])]
                or not waiting.get(here)
            ):
                continue
            here, mask = state.take(k)
            to, to_mask, _watts = state.best(k, here, -1)
            if to >= 0:
                hops[k] += 1
                go(k, here, to, to_mask)
                return True
            state.put(k, here, mask)
        return False

    while not limits.stop:
        while changed:
            n = changed.popleft()
            for k in list(waiting[n]):
                mask = int(target.gpu_mask[k])
                was, was_mask = state.take(k)
                if state.fits(k, n, mask):
                    go(k, was, n, mask)
                    del waiting[n][k]
                else:
                    state.put(k, was, was_mask)
        if not made_way():
            break
    return moves
