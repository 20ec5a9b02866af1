"""The problem as integer arrays: vector bin packing, tasks as items and GPUs as bins."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
)
from optgap.solvers.consolidation.numerics import FloatArray, IntArray, Placement


@dataclass(frozen=True, eq=False)
class Instance:
    """Tasks as vectors of demands, GPUs as bins with capacities.

    L tasks, R capacity rows, K kinds of GPU, G GPUs, N servers. A GPU of kind k with residents S
    costs max_{l∈S} (P_lk + a_lk·F), F = max_{l∈S} f_lk.

    Parameters
    ----------
    problem: what it was made from.
    width: (L,) v, the number of GPUs of each task.
    demand: (R, L) of each task on each of its GPUs; row 0 is memory in bytes (over their common
        divisor), the others are utilisation.
    capacity: (K, R) of a GPU of each kind.
    clock_mhz, static_w, slope: (K, L) f in MHz, P in W and a in W per MHz.
    watts: (K, L) cost of a GPU that runs only this task, W: no set with it costs less.
    gpu_kind, gpu_server: (G,) the kind and the server of each GPU.
    server_w, server_gpus: (N,) static power, W, and number of GPUs of each server.
    """

    problem: ConsolidationProblem
    width: IntArray
    demand: IntArray
    capacity: IntArray
    clock_mhz: FloatArray
    static_w: FloatArray
    slope: FloatArray
    watts: FloatArray
    gpu_kind: IntArray
    gpu_server: IntArray
    server_w: FloatArray
    server_gpus: IntArray

    @property
    def tasks(self) -> int:
        return len(self.width)

    @property
    def gpus(self) -> int:
        return len(self.gpu_kind)

    def servers_for(self, gpus: int) -> int:
        """Servers that so many GPUs take, where all servers are identical."""
        return -(-gpus // int(self.server_gpus[0]))

    @property
    def gang(self) -> bool:
        """Whether there are tasks of several GPUs, and each must be in one server."""
        return self.problem.rules.gang == "server" and bool((self.width > 1).any())

    @cached_property
    def entry_start(self) -> IntArray:
        """(L+1,) the first entry of each task in a flat placement, one entry for each GPU."""
        return np.concatenate([[0], np.cumsum(self.width)]).astype(np.int64)

    @cached_property
    def entry_task(self) -> IntArray:
        """The task of each entry of a flat placement."""
        return np.repeat(np.arange(self.tasks), self.width).astype(np.int64)

    @cached_property
    def server_start(self) -> IntArray:
        """(N+1,) the first GPU of each server."""
        bounds = np.searchsorted(self.gpu_server, np.arange(len(self.server_w) + 1))
        return bounds.astype(np.int64)

    @cached_property
    def scarcity(self) -> FloatArray:
        """(R,) weights of the capacity rows, in proportion to (demand/capacity)³."""
        total = (self.demand * self.width).sum(axis=1) / np.maximum(self.max_capacity, 1)
        return np.asarray(total**3 / max(1e-300, float((total**3).sum())))

    @cached_property
    def cost_is_maximum(self) -> bool:
        """Whether a GPU costs as much as its dearest resident: one power line for all."""
        same_line = (self.static_w == self.static_w[:, :1]).all()
        return bool(same_line and (self.slope == self.slope[:, :1]).all())

    @cached_property
    def largest_share(self) -> FloatArray:
        """(L,) the largest share of any capacity that each task takes of a GPU."""
        shares = self.demand / np.maximum(self.max_capacity[:, None], 1)
        return np.asarray(shares.max(axis=0), dtype=np.float64)

    @cached_property
    def identical_servers(self) -> bool:
        """Whether all GPUs are of one kind, in servers of equal size and static power."""
        return bool(
            len(self.capacity) == 1
            and (self.server_w == self.server_w[0]).all()
            and (self.server_gpus == self.server_gpus[0]).all()
        )

    @cached_property
    def least_watts(self) -> FloatArray:
        """(L,) `watts` on the cheapest kind of GPU that can hold the task, W."""
        fits = self.demand[0][None, :] <= self.capacity[:, :1]
        return np.asarray(np.where(fits, self.watts, np.inf).min(axis=0))

    @cached_property
    def max_capacity(self) -> IntArray:
        """(R,) the largest capacity of any kind."""
        return np.asarray(self.capacity.max(axis=0))

    def cost(self, gpu: int, residents: list[int]) -> float:
        """Power of a GPU with these residents at the lowest clock they bear, W."""
        if not residents:
            return 0.0
        k = int(self.gpu_kind[gpu])
        clock = float(self.clock_mhz[k, residents].max())
        return float((self.static_w[k, residents] + self.slope[k, residents] * clock).max())

    def total(self, placement: Placement) -> float:
        """Power of a placement, W."""
        contents = self.residents(placement)
        awake = {int(self.gpu_server[g]) for g in contents}
        parts = [self.cost(g, tasks) for g, tasks in contents.items()]
        return math.fsum([*parts, *(float(self.server_w[i]) for i in awake)])

    def total_flat(self, entries: IntArray) -> float:
        """Return the same for a flat placement of all tasks, up to rounding."""
        tasks, kind = self.entry_task, self.gpu_kind[entries]
        clock, watts = np.zeros(self.gpus), np.zeros(self.gpus)
        np.maximum.at(clock, entries, self.clock_mhz[kind, tasks])
        own = self.static_w[kind, tasks] + self.slope[kind, tasks] * clock[entries]
        np.maximum.at(watts, entries, own)
        return float(watts.sum() + self.server_w[np.unique(self.gpu_server[entries])].sum())

    def placement(self, entries: IntArray) -> Placement:
        """Return the GPUs of each task in a flat placement."""
        flat, ends = entries.tolist(), self.entry_start.tolist()
        return [tuple(flat[a:b]) for a, b in itertools.pairwise(ends)]

    @staticmethod
    def residents(placement: Placement) -> dict[int, list[int]]:
        """Residents by GPU."""
        found: dict[int, list[int]] = {}
        for task, gpus in enumerate(placement):
            for g in gpus:
                found.setdefault(g, []).append(task)
        return found

    def solution(self, placement: Placement) -> ConsolidationSolution:
        """Return the solution with every GPU at the lowest clock that its residents bear."""
        contents = self.residents(placement)
        clocks = [
            Clock(g, float(self.clock_mhz[int(self.gpu_kind[g]), tasks].max()))
            for g, tasks in contents.items()
        ]
        assignments = [Assignment(ell, tuple(sorted(gpus))) for ell, gpus in enumerate(placement)]
        return ConsolidationSolution.of(assignments, clocks)


def instance_of(problem: ConsolidationProblem) -> Instance:
    """Return the arrays behind a problem; rows that another row implies are left out."""
    used = sorted(set(problem.gpu_kind.tolist()))
    place = {kind: k for k, kind in enumerate(used)}
    memory_limit = {kind: int(problem.gpu_memory[problem.gpu_kind == kind][0]) for kind in used}
    divisor = math.gcd(*(int(d) for d in problem.memory), *memory_limit.values()) or 1
    kept = _undominated(problem.rows, problem.limit_micro)
    demand = np.concatenate([problem.memory[None, :] // divisor, kept])
    capacity = np.array(
        [[memory_limit[kind] // divisor, *[problem.limit_micro] * len(kept)] for kind in used],
        dtype=np.int64,
    )
    tasks = range(len(problem))
    clock = np.array([[problem.floors_mhz[kind][ell] for ell in tasks] for kind in used])
    lines = [[problem.line(ell, kind) for ell in tasks] for kind in used]
    static = np.array([[line.static_w for line in row] for row in lines])
    slope = np.array([[line.slope_w_per_mhz for line in row] for row in lines])
    return Instance(
        problem,
        problem.width,
        demand,
        capacity,
        clock,
        static,
        slope,
        static + slope * clock,
        np.array([place[kind] for kind in problem.gpu_kind.tolist()], dtype=np.int64),
        problem.gpu_server,
        np.array([server.static_w for server in problem.servers]),
        np.array([len(server.gpus) for server in problem.servers], dtype=np.int64),
    )


def _undominated(rows: IntArray, limit: int) -> IntArray:
    """Return the rows that can be violated and are not below another row everywhere."""
    keep: list[IntArray] = []
    order = np.argsort(-rows.sum(axis=1), kind="stable")
    for row in rows[order]:
        if int(row.sum()) <= limit:
            continue
        if len(keep) < 200 and any((row <= other).all() for other in keep):
            continue
        keep.append(row)
    return np.array(keep, dtype=np.int64).reshape(len(keep), rows.shape[1])
