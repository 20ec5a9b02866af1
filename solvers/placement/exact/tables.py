"""Tables of a placement problem for the exact formulations: steps, residuals, thresholds.

Nothing in here is a decision. A node's cost (Eq. 5 in the objective's own unit) is split into
parts that are linear in counts:

* CPU power is a staircase in the CPU use (`cpu_steps`),
* every GPU in use costs its idle-to-full difference,
* fragmentation F_n(M) is what the GPUs alone make of it (`Fragment.active`, `Fragment.idle`)
  plus what is *blocked*: free GPU that a class of M could use did the node have the CPU
  (`Fragment.thresholds`), or had it enough idle GPUs in one place (`Fragment.several`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from optgap.models.placement import PlacementProblem, PowerModel, TargetWorkload
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.cluster import NodeType
from optgap.models.placement.tasks import TaskClass
from optgap.solvers.placement.aggregate import Aggregate
from optgap.solvers.placement.exact.fill import Sizes


@dataclass(frozen=True, slots=True)
class Step:
    """CPU use from `first` to `last` milli-vCPU costs `watts`."""

    first: int
    last: int
    watts: float


def cpu_steps(power: PowerModel, capacity_milli: int) -> tuple[Step, ...]:
    """P_CPU (Eq. 1) as a staircase in the CPU use, from 0 to the capacity.

    Under ``eq1`` a step may go down: a package that is partly free draws nothing there.
    """
    ordered = [0, *(edge + 1 for edge in power.cpu_edges(capacity_milli))]
    steps: list[Step] = []
    for start, following in zip(ordered, [*ordered[1:], capacity_milli + 1], strict=True):
        watts = power.cpu_w(capacity_milli, capacity_milli - start)
        if steps and steps[-1].watts == watts:
            start = steps.pop().first
        steps.append(Step(start, following - 1, watts))
    return tuple(steps)


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """F_n(M) of one node type in milli-GPU, taken apart.

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


class Counted(Aggregate):
    """A placement problem with its tasks counted by class and its nodes by type.

    Attributes
    ----------
    most: (C, K) how many tasks of a class fit one empty node of a type.
    sizes: the requests of tasks that share GPUs.
    accepting: whether the goal is how much GPU demand is accepted.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        super().__init__(problem)
        self.most: IntArray = np.array(
            [[self._most(c, t) for t in range(len(self.types))] for c in range(len(self.classes))]
        )
        self.accepting = problem.objective.goal == "accepted_gpu"
        shares: dict[int, int] = defaultdict(int)
        for task_class, number in zip(self.classes, self.demand, strict=True):
            if is_share(task_class):
                shares[task_class.gpu_milli] += int(number)
        milli = tuple(sorted(shares, reverse=True))
        # only fragmentation asks what a GPU in use has left
        self.sizes = Sizes(milli, tuple(shares[m] for m in milli), self.frag_weight > 0)

    def _most(self, c: int, t: int) -> int:
        task, node = self.classes[c], self.types[t]
        if not self.fits_type[t, c]:
            return 0
        most = int(self.demand[c])
        if task.cpu_milli:
            most = min(most, node.cpu_milli // task.cpu_milli)
        if task.memory_mib:
            most = min(most, node.memory_mib // task.memory_mib)
        if task.num_gpu:
            most = min(most, node.gpus // task.num_gpu * (1000 // task.gpu_milli))
        return most


def is_share(task: TaskClass) -> bool:
    """Tell whether the task takes a part of one GPU only."""
    return task.num_gpu == 1 and task.gpu_milli < 1000
