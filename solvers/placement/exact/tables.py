"""Tables of a placement problem for the exact formulations: steps and sizes.

Nothing in here is a decision. A node's cost (Eq. 5 in the objective's own unit) is split into
parts that are linear in counts:

* CPU power is a staircase in the CPU use (`cpu_steps`),
* every GPU in use costs its idle-to-full difference,
* fragmentation F_n(M) is taken apart by `Fragment`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from optgap.models.placement import PlacementProblem, PowerModel
from optgap.models.placement.arrays import IntArray
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
