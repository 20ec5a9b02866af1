"""Metrics of a solution after every arrival, recomputed from the placements alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.over_time import OverTime
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.referee import check_tasks
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.timeline import node_events, node_values, rest_values, steps


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
    frag_gpu_milli: (T,) F_datacenter, Eq. 4, milli-GPU.
    power_cpu_w, power_gpu_w: (T,) power of all nodes, W (Eq. 3 in its two parts).
    """

    capacity_gpu_milli: int
    arrived_gpu_milli: IntArray
    used_gpu_milli: IntArray
    used_cpu_milli: IntArray
    failed_tasks: IntArray
    frag_gpu_milli: FloatArray
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
    def grar(self) -> FloatArray:
        """(T,) used / arrived GPU demand, 1 before any arrived."""
        return np.divide(
            self.used_gpu_milli,
            self.arrived_gpu_milli,
            out=np.ones(len(self)),
            where=self.arrived_gpu_milli > 0,
        )


def replay(problem: PlacementProblem, solution: PlacementSolution) -> Series:
    """Follow a solution arrival by arrival, as one whose tasks come at 0, 1, … s and leave later.

    Raises
    ------
    InputError: for a solution of another length, or a task on a node or GPUs that it cannot have.
        Capacities are not looked at, see `PlacementProblem.check`; where one is exceeded, the
        numbers mean nothing.
    """
    for broken in check_tasks(problem, solution)[0]:
        where = "" if broken.where == "solution" else broken.where
        found = NoQuote(f"{broken.constraint}: {broken.found}")
        raise InputError("solution", where, found, str(broken.limit))
    size, placed = len(problem.tasks), solution.node >= 0
    come = np.arange(size, dtype=np.float64)
    tasks = replace(problem.tasks, submit_s=come, duration_s=np.full(size, float(size)))
    timed = replace(problem, tasks=tasks, over_time=OverTime(0.0, 2.0 * size))
    events = node_events(timed, replace(solution, start_s=come))
    after = node_values(timed, events.node, events.free_cpu_milli, events.gpu_free_milli)
    rest, starts = rest_values(problem), events.start == 1

    def followed(value: FloatArray, empty: FloatArray) -> FloatArray:
        change = np.zeros(size)
        change[events.task[starts]] = steps(events, value, empty)[starts]
        total: FloatArray = np.cumsum(change) + empty.sum()
        return total

    return Series(
        problem.cluster.gpu_capacity_milli,
        np.cumsum(tasks.demand_milli),
        np.cumsum(np.where(placed, tasks.demand_milli, 0)),
        np.cumsum(np.where(placed, tasks.cpu_milli, 0)),
        np.cumsum(~placed),
        followed(after.fragment, rest.fragment),
        followed(after.cpu_w, rest.cpu_w),
        followed(after.gpu_w, rest.gpu_w),
    )
