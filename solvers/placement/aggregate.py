"""The placement problem with indistinguishable nodes and tasks counted instead of named.

Every objective is a sum over nodes of a cost that depends on what is on the node, so a
solution of the counted problem says how many nodes of each type carry which *contents*.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optgap.models.placement import PlacementProblem, TargetWorkload
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE, NodeType
from optgap.models.placement.fragmentation import node_fragmentation
from optgap.models.placement.tasks import TaskClass

UNITS = 2
"""Devices that are counted in use: GPUs and CPU packages."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of one node, as indices of task classes.

    Parameters
    ----------
    shares: for every GPU with single-GPU tasks, the classes of these tasks.
    multi: classes of the tasks that take several whole GPUs.
    cpu_only: classes of the tasks without GPUs.
    """

    shares: tuple[tuple[int, ...], ...] = ()
    multi: tuple[int, ...] = ()
    cpu_only: tuple[int, ...] = ()

    @property
    def tasks(self) -> Counter[int]:
        """Number of tasks of each class."""
        counts: Counter[int] = Counter(self.multi)
        counts.update(self.cpu_only)
        for gpu in self.shares:
            counts.update(gpu)
        return counts

    def without(self, surplus: Counter[int]) -> Contents:
        """Return the same contents less the tasks in `surplus`, as far as it has them."""
        left = Counter(surplus)

        def keep(members: Sequence[int]) -> tuple[int, ...]:
            kept = []
            for c in members:
                if left[c] > 0:
                    left[c] -= 1
                else:
                    kept.append(c)
            return tuple(kept)

        shares = tuple(filter(None, (keep(gpu) for gpu in self.shares)))
        return Contents(shares, keep(self.multi), keep(self.cpu_only))


@dataclass(frozen=True, slots=True)
class Band:
    """Contents that use at most `max_used_milli` of a node's CPU, and what that costs.

    Parameters
    ----------
    max_used_milli: CPU use in milli-vCPU.
    cpu_cost: weighted CPU power above the idle node's, a lower bound over the band.
    packages: CPU packages in use beyond the idle node's, at most.
    """

    max_used_milli: int
    cpu_cost: float
    packages: int


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """F_n(M) of one node type in milli-GPU, taken apart.

    It is what the GPUs alone make of it (`active`, `idle`) plus what is *blocked*: free GPU that a
    class of M could use did the node have the CPU (`thresholds`), or had it enough idle GPUs in one
    place (`several`).

    Parameters
    ----------
    active: (1001,) cost of a GPU in use with r milli free, were there CPU for every class.
    idle: cost of one idle GPU, were there CPU and idle GPUs for every class.
    thresholds: by CPU need c_m, ascending: (1001,) what a GPU in use with r milli free
        could serve of the classes with that need; entry 1000 is an idle GPU.
    several: (c_m, k, 1000·p_m) of the classes that want k > 1 GPUs: an idle GPU serves them
        when c_m is free and k GPUs of the node are idle.
    """

    active: FloatArray
    idle: float
    thresholds: tuple[tuple[int, FloatArray], ...]
    several: tuple[tuple[int, int, float], ...]


def fragment(workload: TargetWorkload, node: NodeType) -> Fragment:
    """Take F_n(M) (FGD, section 4) of a node type apart."""
    free = np.arange(1001)
    active = np.zeros(1001)
    idle = 0.0
    served: dict[int, FloatArray] = defaultdict(lambda: np.zeros(1001))
    several: list[tuple[int, int, float]] = []
    for m in range(len(workload)):
        p = float(workload.popularity[m])
        need, wanted = int(workload.cpu_milli[m]), int(workload.num_gpu[m])
        milli, spec = int(workload.gpu_milli[m]), workload.gpu_specs[m]
        usable = 0 < wanted <= node.gpus and need <= node.cpu_milli
        if not usable or (spec and node.model not in spec.split("|")):
            active += p * free
            idle += p * 1000
        elif wanted > 1:
            active += p * free  # its GPUs have to be idle
            several.append((need, wanted, 1000 * p))
        else:
            active += p * np.where(free < milli, free, 0)
            served[need] += p * np.where(free >= milli, free, 0)
    return Fragment(active, idle, tuple(sorted(served.items())), tuple(several))


def state_cost(
    problem: PlacementProblem,
    weights: tuple[float, float],
    node: NodeType,
    free_cpu: int,
    *,
    gpu_free: Sequence[int],
) -> float:
    """Return the cost of a node's state, by weights per W and per milli-GPU of fragmentation."""
    cost = 0.0
    if weights[0]:
        watts = problem.power.cpu_w(node.cpu_milli, free_cpu)
        cost += weights[0] * (watts + problem.power.gpu_w(node.model, gpu_free))
    if weights[1]:
        buckets = node_fragmentation(problem.workload, node.model, free_cpu, gpu_free)
        cost += weights[1] * buckets.fragment
    return cost


class Aggregate:
    """Task classes with demands, node types with counts, and the cost of a node's contents.

    Costs are relative to the idle node, so an unused node costs nothing; `base` is what the
    idle cluster costs. They are in the objective's own unit.

    Parameters
    ----------
    problem: the placement problem.
    weights: cost per W of power and per milli-GPU of fragmentation, when these are not to be
        the objective's.
    counting: whether GPUs and CPU packages in use are counted (`in_use`), too.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        weights: tuple[float, float] | None = None,
        counting: bool = False,
    ) -> None:
        self.problem, self.counting = problem, counting
        self.classes: tuple[TaskClass, ...] = problem.tasks.classes
        self.demand: IntArray = np.bincount(
            problem.tasks.class_of, minlength=len(self.classes)
        ).astype(np.int64)
        self.types: tuple[NodeType, ...] = problem.cluster.types
        self.count: IntArray = np.bincount(
            problem.cluster.type_of, minlength=len(self.types)
        ).astype(np.int64)
        self.power_weight, self.frag_weight = weights or problem.objective.weights
        self.cpu_milli = np.array([c.cpu_milli for c in self.classes], dtype=np.int64)
        self.memory_mib = np.array([c.memory_mib for c in self.classes], dtype=np.int64)
        self.num_gpu = np.array([c.num_gpu for c in self.classes], dtype=np.int64)
        self.gpu_milli = np.array([c.gpu_milli for c in self.classes], dtype=np.int64)
        # Tasks of memory alone use nothing that costs or runs short in the master: they are
        # left out of it and find room afterwards.
        self.weightless = (self.num_gpu == 0) & (self.cpu_milli == 0)
        self.fits_type = np.array([[node.takes(c) for c in self.classes] for node in self.types])
        self.weights = self.power_weight, self.frag_weight
        self._idle_cost = [
            state_cost(problem, self.weights, t, t.cpu_milli, gpu_free=[1000] * t.gpus)
            for t in self.types
        ]
        self._costs: dict[tuple[int, int, tuple[int, ...]], float] = {}

    @property
    def base(self) -> float:
        """Cost of the idle cluster."""
        return float(sum(n * cost for n, cost in zip(self.count, self._idle_cost, strict=True)))

    def cost(self, t: int, contents: Contents) -> float:
        """Return what a node of type `t` with these contents costs beyond the idle node."""
        node = self.types[t]
        used = sum(n * int(self.cpu_milli[c]) for c, n in contents.tasks.items())
        loads = sorted(sum(int(self.gpu_milli[c]) for c in gpu) for gpu in contents.shares)
        whole = sum(int(self.num_gpu[c]) for c in contents.multi)
        key = (t, used, (*loads, *[1000] * whole))
        if key not in self._costs:
            gpu_free = [1000 - load for load in key[2]]
            gpu_free += [1000] * (node.gpus - len(gpu_free))
            free = node.cpu_milli - used
            state = state_cost(self.problem, self.weights, node, free, gpu_free=gpu_free)
            self._costs[key] = state - self._idle_cost[t]
        return self._costs[key]

    def in_use(self, t: int, contents: Contents) -> tuple[int, int]:
        """GPUs and CPU packages in use with these contents, beyond the idle node's."""
        used = sum(n * int(self.cpu_milli[c]) for c, n in contents.tasks.items())
        gpus = len(contents.shares) + sum(int(self.num_gpu[c]) for c in contents.multi)
        return gpus, self._packages(self.types[t], used)

    def _packages(self, node: NodeType, used_milli: int) -> int:
        busy, capacity = self.problem.power.active_packages, node.cpu_milli
        return busy(capacity, capacity - used_milli) - busy(capacity, capacity)

    @cached_property
    def unit_cost(self) -> FloatArray:
        """(2,) what one more GPU costs at most, and a CPU package in use at least."""
        cpu = self.problem.power.cpu
        gpu = [cost for cost, t in zip(self.gpu_cost, self.types, strict=True) if t.gpus]
        each = [max(gpu, default=0.0), self.power_weight * (cpu.full_w - cpu.idle_w)]
        return np.maximum(0.0, each)

    def feasible(self, t: int, contents: Contents) -> bool:
        """Tell whether a node of type `t` can carry these contents."""
        node = self.types[t]
        tasks = contents.tasks
        if not all(self.fits_type[t][c] for c in tasks):
            return False
        if sum(n * int(self.cpu_milli[c]) for c, n in tasks.items()) > node.cpu_milli:
            return False
        if sum(n * int(self.memory_mib[c]) for c, n in tasks.items()) > node.memory_mib:
            return False
        gpus = len(contents.shares) + sum(int(self.num_gpu[c]) for c in contents.multi)
        if gpus > node.gpus or sum(tasks.values()) > TASKS_PER_NODE:
            return False
        return all(sum(int(self.gpu_milli[c]) for c in gpu) <= 1000 for gpu in contents.shares)

    def bands(self, t: int) -> list[Band]:
        """CPU bands of node type `t`, ascending and ending at its capacity.

        Within a band neither the CPU power nor which classes of M find enough CPU changes,
        except that the power is its minimum over the band. Contents evaluated in a band above
        their own cost no less there than in their own when power grows with use, and otherwise
        (Eq. 1 as printed drops partly free packages) the minimum keeps bounds valid.
        """
        node = self.types[t]
        capacity = node.cpu_milli
        needs = sorted({int(c) for c in self.problem.workload.cpu_milli})
        edges = {capacity}
        if self.frag_weight:
            edges |= {capacity - c for c in needs if 0 <= capacity - c < capacity}
        if self.power_weight or self.counting:
            edges |= set(self.problem.power.cpu_edges(capacity))
        bands = []
        last = -1
        for edge in sorted(edges):
            cost = self._least_cpu_cost(capacity, last + 1, edge)
            bands.append(Band(edge, cost, self._packages(node, edge)))
            last = edge
        return bands

    def _least_cpu_cost(self, capacity: int, low: int, high: int) -> float:
        if not self.power_weight:
            return 0.0
        power = self.problem.power
        idle = power.cpu_w(capacity, capacity)
        ends = (power.cpu_w(capacity, capacity - used) for used in (low, high))
        return self.power_weight * (min(ends) - idle)

    @cached_property
    def gpu_cost(self) -> FloatArray:
        """(types,) weighted power of one more active GPU."""
        power = self.problem.power
        return np.array(
            [
                self.power_weight * (power.gpu_full_w[t.model] - power.gpu_idle_w[t.model])
                if t.gpus
                else 0.0
                for t in self.types
            ]
        )

    def fragment_weights(self, t: int, band: Band) -> tuple[FloatArray, FloatArray]:
        """Weighted fragmentation in a band, split over the GPUs of a node of type `t`.

        Returns
        -------
        (1001,) cost of an active GPU with r milli free, and (gpus + 1,) cost of i idle GPUs.
        The split is exact: a class of M that wants one GPU counts each GPU for itself; one
        that wants several counts every active GPU, and the idle ones unless enough are idle.
        """
        parts, left = self._parts[t], self.types[t].cpu_milli - band.max_used_milli
        count = np.arange(self.types[t].gpus + 1)
        active, idle = parts.active.copy(), np.asarray(parts.idle * count, dtype=np.float64)
        for need, served in parts.thresholds:
            if need > left:
                active += served
                idle += served[1000] * count
        for need, wanted, cost in parts.several:
            idle += cost * np.where((need > left) | (count < wanted), count, 0)
        return self.frag_weight * active, self.frag_weight * idle

    @cached_property
    def _parts(self) -> list[Fragment]:
        return [fragment(self.problem.workload, node) for node in self.types]

    @property
    def priced_demand(self) -> IntArray:
        """(classes,) demand, without the weightless."""
        return np.where(self.weightless, 0, self.demand)

    def demand_counter(self, *, weightless: bool) -> Counter[int]:
        """Return how many tasks of each class there are, with or without the weightless."""
        demand = self.demand if weightless else self.priced_demand
        return Counter({c: int(n) for c, n in enumerate(demand) if n})
