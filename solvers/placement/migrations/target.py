"""Offline placement matched to the present one so that few tasks move, and the order of moves.

The offline method finds contents for the nodes of a type, and any such node can have any of these.
An assignment therefore puts each content on the node that has most of it already. The result is a
list of moves that all fit. If tasks block one another, one of them waits on a third node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import BoolArray, IntArray
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.migrations import MigrationProblem, Move, admitted
from optgap.models.placement.power import CORE_MILLI
from optgap.solvers.placement.migrations.state import State

MOST_HOPS = 3
"""Largest number of times that a task makes way before it reaches its target."""


@dataclass(frozen=True)
class Part:
    """Nodes of a cluster without their load: the tasks without GPUs that must stay.

    Parameters
    ----------
    problem: the nodes, less the CPU and memory of their load, and the other tasks.
    tasks: indices of these tasks in the cluster.
    here: present places of the tasks.
    load_w: least power that the load adds to the nodes, W.
    """

    problem: PlacementProblem
    tasks: IntArray
    here: PlacementSolution
    load_w: float


def free_nodes(migration: MigrationProblem) -> IntArray:
    """Return the nodes without tasks that other nodes with such GPUs would not take."""
    problem, allowed = migration.problem, np.array(migration.allowed)
    open_to = np.asarray(allowed[migration.movable].any(axis=0))
    such = np.array(admitted(problem)) & (problem.cluster.gpus >= problem.tasks.num_gpu[:, None])
    free = migration.movable & (allowed | ~(such & open_to)).all(axis=1)
    open_to[migration.current.node[~free & ~_load(migration)]] = False
    return np.flatnonzero(open_to)


def _load(migration: MigrationProblem) -> BoolArray:
    load: BoolArray = ~migration.movable & (migration.problem.tasks.num_gpu == 0)
    return load


def without_load(migration: MigrationProblem, nodes: IntArray) -> Part | None:
    """Return nodes without their load; None if there is nothing but load.

    A node of whole cores gets a milli-vCPU more than is left. Its CPU packages then equal those of
    the node with its load, whose cores are counted from the free amount.
    """
    problem, current = migration.problem, migration.current
    cluster, of, power = problem.cluster, problem.tasks, problem.power
    load = _load(migration)
    tasks = np.flatnonzero(~load & np.isin(current.node, nodes))
    if not len(tasks):
        return None
    used, memory = np.zeros_like(cluster.cpu_milli), cluster.memory_mib.copy()
    np.add.at(used, current.node[load], of.cpu_milli[load])
    np.subtract.at(memory, current.node[load], of.memory_mib[load])
    cpu = cluster.cpu_milli - used
    cpu += (used > 0) & (cpu % CORE_MILLI == 0)
    load_w, columns = 0.0, (cluster.cpu_milli, used, cpu)
    for row, count in Counter(zip(*(c[nodes].tolist() for c in columns), strict=True)).items():
        size, held, left = row
        edges = (*(e - held for e in power.cpu_edges(size)), *power.cpu_edges(left))
        # both are constant between edges: what others use is tried at each and behind it
        tried = {0, *edges, *(edge + 1 for edge in edges)}
        load_w += count * min(
            power.cpu_w(size, size - held - u) - power.cpu_w(left, left - u)
            for u in tried
            if 0 <= u <= size - held
        )
    names, models = ([column[n] for n in nodes] for column in (cluster.names, cluster.models))
    rest = Cluster.of(names, cpu[nodes], memory[nodes], cluster.gpus[nodes], models)
    ranks, mask = np.arange(len(nodes)), current.gpu_mask[tasks]
    part = replace(problem, cluster=rest, tasks=of.take(tasks.tolist()), ranks=ranks)
    here = PlacementSolution.of_arrays(np.searchsorted(nodes, current.node[tasks]), mask)
    return Part(part, tasks, here, load_w)


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
        gpus = range(int(problem.cluster.gpus[n]))
        want, have = (
            {g: Counter(class_of[k] for k in on if masks[k] == 1 << g) for g in gpus}
            for on, masks in ((unmet, found.gpu_mask), (members[0][n], here.gpu_mask))
        )
        free = {*gpus} - {*place.values()}
        pairs = [(-(want[g] & have[h]).total(), g, h) for g in want.keys() - place for h in free]
        for _, g, h in sorted(pairs):
            if g not in place and h in free:
                place[g] = h
                free.remove(h)
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
    If tasks still block one another, the moves end before the target. Tasks that may not go to
    their target stay.
    """
    state, moves, hops = State(migration), list[Move](), Counter[int]()
    node, masks, sizes = target.node.tolist(), target.gpu_mask.tolist(), state.tasks.demand_milli
    movable, allowed = migration.movable, migration.allowed
    moved = migration.moved(target).tolist()
    left = dict.fromkeys(k for k in moved if movable[k] and allowed[k][node[k]])
    changed = {node[k] for k in left}

    def left_by(k: int, aside: bool) -> int:
        """Move a task to its target, or aside; return the node that it left, -1 if it did not."""
        was, mask = state.take(k)
        n, bits = state.best(k, was, -1)[:2] if aside else (node[k], masks[k])
        if n < 0 or not (aside or state.fits(k, n, bits)):
            state.put(k, was, mask)
            return -1
        state.put(k, n, bits)
        moves.append(Move(k, was, n, bits))
        return was

    while left and not limits.stop:
        waiting = [k for k in left if node[k] in changed]
        there = {k: was for k in waiting if (was := left_by(k, aside=False)) >= 0}
        changed = {*there.values()}
        for k in there:
            del left[k]
        if changed:
            continue
        wanted = {node[k] for k in left}
        blocking = [k for k in left if hops[k] < MOST_HOPS and int(state.node[k]) in wanted]
        for k in sorted(blocking, key=lambda k: (hops[k], sizes[k], k)):
            if (was := left_by(k, aside=True)) >= 0:
                hops[k] += 1
                changed = {was}
                break
        else:
            break
    return moves
