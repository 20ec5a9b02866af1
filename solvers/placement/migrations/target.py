"""A far better placement, laid over the one that is there so that few tasks move, and its order.

What the offline method finds says which contents nodes of a type have, not which node has which:
an assignment puts the contents where most of them are already. The way there is a list of
moves each of which fits; where tasks block one another, one of them waits on a third node.
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
"""How often a task may make way for others before it comes to where it belongs."""
Slot = tuple[int, int, int]
"""A place that waits for a task: its class, node and GPUs (bits)."""


@dataclass(frozen=True)
class Part:
    """Some nodes of a cluster, and those of their tasks that are not load of a node.

    Parameters
    ----------
    problem: these nodes and tasks; the load takes its CPU and memory off the nodes.
    nodes, tasks: their indices in the cluster.
    here: where the tasks are now.
    """

    problem: PlacementProblem
    nodes: IntArray
    tasks: IntArray
    here: PlacementSolution


def _load(migration: MigrationProblem) -> BoolArray:
    """(T,) the tasks without GPUs that must stay: nothing but load of their nodes."""
    load: BoolArray = ~migration.movable & (migration.problem.tasks.num_gpu == 0)
    return load


def free_part(migration: MigrationProblem) -> Part | None:
    """The nodes on which every task may be exchanged for any like it, with their tasks.

    A node that a task may not go to, and where it would not fit anyway, confines nobody.
    None where no task is on such a node.
    """
    cluster, tasks_of = migration.problem.cluster, migration.problem.tasks
    load = _load(migration)
    held = migration.closed.copy()
    held[migration.current.node[~migration.movable & ~load]] = True
    shut = [set(cluster.type_of[~held & ~inside].tolist()) for inside in migration.node_sets]
    pairs = list(zip(migration.node_set_of.tolist(), tasks_of.class_of.tolist(), strict=True))
    fits, classes, types = migration.problem.fits_empty, tasks_of.classes, cluster.types
    narrow = {
        (g, c) for g, c in set(pairs) if g >= 0 and any(fits(classes[c], types[t]) for t in shut[g])
    }
    confined = np.array([pair in narrow for pair in pairs])
    held[migration.current.node[confined & ~load]] = True
    return _part(migration, np.flatnonzero(~held))


def without_load(migration: MigrationProblem) -> tuple[Part, float] | None:
    """All nodes without the load that stays on them, and W that this load adds at least.

    All other tasks may go anywhere. The least that a node draws more with its load, whatever else
    is on it, may be added to a bound. None where the load is more than a node has, or all there is.
    """
    cluster, power = migration.problem.cluster, migration.problem.power
    load = _held(migration, migration.problem.tasks.cpu_milli)
    short = (load > cluster.cpu_milli).any()
    rest = None if short else _part(migration, np.arange(len(cluster)))
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
    """(N,) what load takes of something of each node."""
    load = _load(migration)
    held = np.zeros(len(migration.problem.cluster), dtype=np.int64)
    np.add.at(held, migration.current.node[load], of[load])
    return held


def _part(migration: MigrationProblem, nodes: IntArray) -> Part | None:
    """These nodes less their load, with their tasks; None without tasks.

    A node of whole cores has a milli-vCPU more than is left of it: so that its CPU packages are
    those of the node with its load, whose cores are counted from what is free.
    """
    problem, current = migration.problem, migration.current
    cluster, of, load = problem.cluster, problem.tasks, _load(migration)
    tasks = np.flatnonzero(np.isin(current.node, nodes) & ~load)
    if not len(tasks):
        return None
    place = np.full(len(cluster), -1)
    place[nodes] = np.arange(len(nodes))
    here = PlacementSolution.of_arrays(place[current.node[tasks]], current.gpu_mask[tasks])
    if len(nodes) == len(cluster) and len(tasks) == len(of):
        return Part(problem, nodes, tasks, here)
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
    """`found` with nodes, GPUs and tasks that nothing tells apart exchanged to resemble `here`.

    Costs exactly what `found` costs, and moves fewer tasks.
    """
    problem, current = part.problem, part.here
    overlay = _Overlay(problem, current, found)
    held, wanted = _by_node(current), _by_node(found)
    slots: list[Slot] = []
    for n, like in _matched(problem, current, found):
        slots += overlay.keep(n, held[n], wanted[like])
    pool: dict[int, list[int]] = defaultdict(list)
    for k in np.flatnonzero(overlay.node < 0).tolist():
        pool[overlay.class_of[k]].append(k)
    for c, n, gpus in slots:
        overlay.put(pool[c].pop(), n, gpus)
    return PlacementSolution.of_arrays(overlay.node, overlay.mask)


def _by_node(solution: PlacementSolution) -> dict[int, list[int]]:
    members: dict[int, list[int]] = defaultdict(list)
    for k, n in enumerate(solution.node.tolist()):
        members[n].append(k)
    return members


def _matched(
    problem: PlacementProblem, current: PlacementSolution, found: PlacementSolution
) -> list[tuple[int, int]]:
    """Pairs of nodes of one type: the first is to carry what `found` has on the second."""
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
        for c in range(classes):
            have, want = counts[0][nodes, c], counts[1][nodes, c]
            if have.any() and want.any():
                overlap += np.minimum.outer(have, want)
        rows, columns = linear_sum_assignment(-overlap)
        pairs += zip(nodes[rows].tolist(), nodes[columns].tolist(), strict=True)
    return pairs


class _Overlay:
    """Where tasks come to be when `current` is to look like `found`: node -1 until that is known.

    `class_of` and `num_gpu` are those of the tasks.
    """

    def __init__(
        self, problem: PlacementProblem, current: PlacementSolution, found: PlacementSolution
    ) -> None:
        self.problem, self.current, self.found = problem, current, found
        self.class_of: list[int] = problem.tasks.class_of.tolist()
        self.num_gpu: list[int] = problem.tasks.num_gpu.tolist()
        self.node = np.full(len(current), -1, dtype=np.int64)
        self.mask = np.zeros(len(current), dtype=np.int64)

    def put(self, k: int, n: int, gpus: int) -> None:
        """Task `k` is to be on these GPUs (bits) of node `n`."""
        self.node[k], self.mask[k] = n, gpus

    def keep(self, n: int, here: list[int], wanted: list[int]) -> list[Slot]:
        """Keep what node `n` has of what it is to have; returns the places still to be filled."""
        place: dict[int, int] = {}  # GPU in `found` -> GPU of this node
        waiting: dict[int, list[int]] = defaultdict(list)
        for k in here:
            waiting[self.class_of[k]].append(k)
        unmet: list[int] = []
        shared: list[int] = []
        for w in sorted(wanted, key=lambda w: -self.num_gpu[w]):
            same = waiting[self.class_of[w]]
            if self.num_gpu[w] == 1:
                shared.append(w)
            elif same:
                k = same.pop()
                self.put(k, n, int(self.current.gpu_mask[k]))
                place.update(zip(self.found.gpus(w), self.current.gpus(k), strict=True))
            else:
                unmet.append(w)
        gpus = range(int(self.problem.cluster.gpus[n]))
        place.update(self._gpu_pairs(here, shared, sorted(set(gpus) - set(place.values()))))
        rest = iter(sorted(set(gpus) - set(place.values())))
        for g in gpus:
            if g not in place:
                place[g] = next(rest)
        slots = [(self.class_of[w], n, self._bits(place, w)) for w in unmet]
        for w in shared:
            bits = self._bits(place, w)
            same = waiting[self.class_of[w]]
            stay = next((k for k in same if int(self.current.gpu_mask[k]) == bits), None)
            if stay is None:
                slots.append((self.class_of[w], n, bits))
            else:
                same.remove(stay)
                self.put(stay, n, bits)
        return slots

    def _gpu_pairs(self, here: list[int], shared: list[int], free: list[int]) -> dict[int, int]:
        """Which of the `free` GPUs takes what `found` has on which of its, to keep the most."""
        from scipy.optimize import linear_sum_assignment

        have: dict[int, Counter[int]] = defaultdict(Counter)
        want: dict[int, Counter[int]] = defaultdict(Counter)
        for k in here:
            if self.num_gpu[k] == 1:
                have[self.current.gpus(k)[0]][self.class_of[k]] += 1
        for w in shared:
            want[self.found.gpus(w)[0]][self.class_of[w]] += 1
        rows = sorted(want)
        overlap = np.array([[(want[r] & have[c]).total() for c in free] for r in rows])
        if not overlap.size:
            return {}
        chosen = zip(*linear_sum_assignment(-overlap), strict=True)
        return {rows[i]: free[j] for i, j in chosen}

    def _bits(self, place: dict[int, int], w: int) -> int:
        """The GPUs of the node that stand for those of task `w` in `found`, as bits."""
        return sum(1 << place[g] for g in self.found.gpus(w))


def in_order(migration: MigrationProblem, target: PlacementSolution, limits: Limits) -> list[Move]:
    """Moves from the current placement towards `target`, each of which fits.

    A task that must make way first and has no place yet waits on other nodes, `MOST_HOPS` times at
    most. Where tasks block one another all the same, the moves end on the way.
    """
    return _Journey(migration, target).run(limits)


class _Journey:
    """Tasks on their way to where they belong.

    Parameters
    ----------
    target: where every task belongs.
    """

    def __init__(self, migration: MigrationProblem, target: PlacementSolution) -> None:
        self.state = State(migration)
        self.target = target
        self.moves: list[Move] = []
        moved = migration.moved(target).tolist()
        self.waiting: dict[int, dict[int, None]] = defaultdict(dict)
        for k in moved:
            self.waiting[int(target.node[k])][k] = None
        self.left = len(moved)
        self.changed = deque(self.waiting)
        self.hops: Counter[int] = Counter()
        tasks = self.state.tasks
        self.may_hop = sorted(
            moved, key=lambda k: (tasks.demand_milli[k], tasks.cpu_milli[k], k), reverse=True
        )

    def run(self, limits: Limits) -> list[Move]:
        """All moves, up to where tasks block one another or a limit is reached."""
        while self.left and not limits.stop:
            while self.changed:
                self._arrivals(self.changed.popleft())
            if self.left and not self._make_way():
                break
        return self.moves

    def _arrivals(self, n: int) -> None:
        """Move what belongs on node `n` and fits there now."""
        for k in list(self.waiting[n]):
            if self._carry_out(k, n):
                del self.waiting[n][k]
                self.left -= 1

    def _carry_out(self, k: int, n: int) -> bool:
        state, mask = self.state, int(self.target.gpu_mask[k])
        was, was_mask = state.take(k)
        if not state.fits(k, n, mask):
            state.put(k, was, was_mask)
            return False
        self._go(k, was, n, mask)
        return True

    def _go(self, k: int, was: int, n: int, mask: int) -> None:
        """Task `k`, taken from node `was`, starts on node `n`."""
        self.state.put(k, n, mask)
        self.moves.append(Move(k, was, n, mask))
        if self.waiting.get(was):
            self.changed.append(was)

    def _make_way(self) -> bool:
        """Send one of the tasks that still have to move to a third node, the smallest that can."""
        state, aside = self.state, []
        while self.may_hop:
            k = self.may_hop.pop()
            if k not in self.waiting[int(self.target.node[k])]:
                continue
            if not self.waiting.get(int(state.node[k])):
                aside.append(k)  # nobody waits for its place
                continue
            n, mask = state.take(k)
            to, to_mask, _watts = state.best(k, n, -1)
            if to >= 0:
                self.hops[k] += 1
                again = [k] if self.hops[k] < MOST_HOPS else []
                self.may_hop = [*again, *self.may_hop, *reversed(aside)]
                self._go(k, n, to, to_mask)
                return True
            state.put(k, n, mask)
            aside.append(k)
        self.may_hop = aside[::-1]
        return False
