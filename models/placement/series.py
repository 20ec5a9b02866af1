"""What a solution amounts to after every arrival, recomputed from the placements alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.kernels import (
    PROFILE,
    Table,
    buckets,
    cpu_w,
    gpu_profile,
    gpu_w,
    idle_gpus,
    node_table,
    workload_table,
)
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.solution import PlacementSolution

BUCKETS = ("q1", "q2", "q3", "q4", "xl", "xr", "na")
"""The parts of the free GPU, in the order of `Series.buckets`; all but q3 are fragments."""


@dataclass(frozen=True, eq=False)
class Series:
    """The state of the cluster after each of T arrivals; one that fails counts as arrived.

    Parameters
    ----------
    capacity_gpu_milli: GPU capacity of the cluster, milli-GPU.
    arrived_gpu_milli: (T,) GPU demand of all tasks so far, milli-GPU.
    used_gpu_milli: (T,) GPU demand of the tasks placed, milli-GPU.
    used_cpu_milli: (T,) CPU demand of the tasks placed, milli-vCPU.
    failed_tasks: (T,) tasks not placed so far.
    buckets: (T, 7) the cluster's free GPU by `BUCKETS`, popularity-weighted milli-GPU.
    power_cpu_w, power_gpu_w: (T,) power of all nodes, W (Eq. 3 in its two parts).
    """

    capacity_gpu_milli: int
    arrived_gpu_milli: IntArray
    used_gpu_milli: IntArray
    used_cpu_milli: IntArray
    failed_tasks: IntArray
    buckets: FloatArray
    power_cpu_w: FloatArray
    power_gpu_w: FloatArray

    def __len__(self) -> int:
        return len(self.arrived_gpu_milli)

    @property
    def load(self) -> FloatArray:
        """(T,) GPU demand arrived, as a share of capacity: the papers' x axis."""
        return self.arrived_gpu_milli / max(1, self.capacity_gpu_milli)

    @property
    def power_w(self) -> FloatArray:
        """(T,) P_datacenter, Eq. 3 (EOPC), in W."""
        return self.power_cpu_w + self.power_gpu_w

    @property
    def frag_gpu_milli(self) -> FloatArray:
        """(T,) F_datacenter, Eq. 4, in milli-GPU."""
        q1, q2, _q3, q4, xl, xr, na = self.buckets.T
        fragments: FloatArray = q1 + q2 + q4 + xl + xr + na
        return fragments

    @property
    def grar(self) -> FloatArray:
        """(T,) used / arrived GPU demand, 1 before any arrived."""
        return np.divide(
            self.used_gpu_milli,
            self.arrived_gpu_milli,
            out=np.ones(len(self)),
            where=self.arrived_gpu_milli > 0,
        )


def replay(problem: PlacementProblem, solution: PlacementSolution) -> Series:
    """Follow a solution arrival by arrival.

    Each arrival touches one node, so the cost does not grow with the cluster. The cluster's
    totals are compensated sums: they end where a fresh sum over the nodes would.

    Raises
    ------
    InputError: for a solution of another length, or nodes or GPUs that do not exist. Other
        violations are not looked for, see `PlacementProblem.check`; with them the numbers
        mean nothing.
    """
    _require_existing(problem, solution)
    tasks, cluster = problem.tasks, problem.cluster
    size = len(tasks)
    placed = solution.node >= 0
    parts, power = np.zeros((size, 7)), np.zeros((size, 2))
    nodes = node_table(problem, np.arange(len(cluster)))
    _follow(
        workload_table(problem),
        nodes,
        idle_gpus(nodes["gpus"]),
        nodes["cpu_milli"].copy(),
        np.array(tasks.cpu_milli),
        np.array(tasks.gpu_milli),
        np.array(solution.node),
        np.array(solution.gpu_mask),
        np.zeros(len(problem.workload), dtype=PROFILE),
        parts,
        power,
    )
    return Series(
        cluster.gpu_capacity_milli,
        np.cumsum(tasks.demand_milli),
        np.cumsum(np.where(placed, tasks.demand_milli, 0)),
        np.cumsum(np.where(placed, tasks.cpu_milli, 0)),
        np.cumsum(~placed),
        parts,
        power[:, 0],
        power[:, 1],
    )


def _require_existing(problem: PlacementProblem, solution: PlacementSolution) -> None:
    tasks, cluster = len(problem.tasks), problem.cluster
    if len(solution) != tasks:
        found = NoQuote(f"{len(solution)} placements")
        raise InputError("solution", "", found, f"{tasks}, one per task")
    bad = np.flatnonzero((solution.node < -1) | (solution.node >= len(cluster)))
    if bad.size:
        k = int(bad[0])
        expected = f"a node below {len(cluster)}, or -1"
        raise InputError("solution", f"task {k}", int(solution.node[k]), expected)
    gpus = np.where(solution.node >= 0, cluster.gpus[solution.node], 0)
    bad = np.flatnonzero((solution.gpu_mask >> gpus != 0) | (solution.gpu_mask < 0))
    if bad.size:
        k = int(bad[0])
        found = NoQuote(f"GPUs {', '.join(map(str, solution.gpus(k)))}")
        raise InputError("solution", f"task {k}", found, f"GPUs below {int(gpus[k])}")


@compiled
def _node_values(
    workload: Table, nodes: Table, n: int, gpu_free: IntArray, free_cpu: int, profile: Table
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """The seven buckets of node `n`, its CPU power and its GPU power."""
    node = nodes[n]
    seen = workload[node["model"]]
    free = gpu_profile(seen, gpu_free, node["gpus"], profile)
    q1, q2, q3, q4, xl, xr, na = buckets(seen, free_cpu, free, profile, 0, 0, 0)
    busy = 0
    for g in range(node["gpus"]):
        if gpu_free[g] < 1000:
            busy += 1
    return q1, q2, q3, q4, xl, xr, na, cpu_w(node, free_cpu), gpu_w(node, busy)


@compiled
def _add(total: FloatArray, lost: FloatArray, i: int, value: float) -> None:
    """Add to `total[i]`, keeping what rounding loses in `lost[i]` (Neumaier)."""
    before = total[i]
    after = before + value
    if abs(before) >= abs(value):
        lost[i] += (before - after) + value
    else:
        lost[i] += (value - after) + before
    total[i] = after


@compiled
def _follow(
    workload: Table,
    nodes: Table,
    gpu_free: IntArray,
    free_cpu: IntArray,
    cpu_milli: IntArray,
    gpu_milli: IntArray,
    placed_on: IntArray,
    gpu_mask: IntArray,
    profile: Table,
    parts: FloatArray,
    power: FloatArray,
) -> None:
    """Fill (T, 7) buckets and (T, 2) CPU and GPU power of the cluster."""
    total, lost = np.zeros(9), np.zeros(9)
    current = np.zeros((len(nodes), 9))
    for n in range(len(nodes)):
        values = _node_values(workload, nodes, n, gpu_free[n], free_cpu[n], profile)
        for i in range(9):
            current[n, i] = values[i]
            _add(total, lost, i, values[i])
    for k in range(len(placed_on)):
        n = placed_on[k]
        if n >= 0:
            free_cpu[n] -= cpu_milli[k]
            for g in range(nodes[n]["gpus"]):
                if gpu_mask[k] >> g & 1:
                    gpu_free[n, g] -= gpu_milli[k]
            values = _node_values(workload, nodes, n, gpu_free[n], free_cpu[n], profile)
            for i in range(9):
                _add(total, lost, i, -current[n, i])
                _add(total, lost, i, values[i])
                current[n, i] = values[i]
        for i in range(7):
            parts[k, i] = total[i] + lost[i]
        for i in range(2):
            power[k, i] = total[7 + i] + lost[7 + i]
