"""Placement policies over time once more: plain Python, a list of what runs, no heap, no cache.

Shares no code with the package beyond the problem's own data; what is decided at an arrival is
`transcriptions.pwr_fgd`'s. Times have to be sums of halves, so that equal ones are equal.
"""

from __future__ import annotations

import math

from transcriptions.pwr_fgd import SlowRun, kind_of

from optgap.models.placement import PlacementProblem


class SlowTimedRun(SlowRun):
    """One run of one policy over tasks that leave."""

    def __init__(self, problem: PlacementProblem, policy: str, **options: object) -> None:
        super().__init__(problem, policy, **options)  # type: ignore[arg-type]
        assert problem.over_time is not None
        self.ends: dict[int, float] = {}
        self.where: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.starts: dict[int, float] = {}

    def runs(self) -> list[tuple[int, tuple[int, ...], float] | None]:
        """Node, GPUs and start of every task."""
        tasks = self.problem.tasks
        left = [k for k in range(len(tasks)) if self.ever(k)]
        while left or self.ends:
            leave = min(self.ends.values(), default=math.inf)
            come = float(tasks.submit_s[left[0]]) if left else math.inf
            now = min(leave, come)
            if leave == now:
                for k in [k for k, end in self.ends.items() if end == now]:
                    self.leave(k)
                continue
            k = left.pop(0)
            if (place := self.place(k)) is not None:
                self.start(k, place, now)
        return [
            (*self.where[k], self.starts[k]) if k in self.where else None for k in range(len(tasks))
        ]

    def ever(self, k: int) -> bool:
        """Whether some empty node could take task `k`."""
        task, cluster = self.problem.tasks.task_class(k), self.problem.cluster
        for n in range(len(cluster)):
            fits = task.cpu_milli <= cluster.cpu_milli[n] and task.num_gpu <= cluster.gpus[n]
            named = not (task.num_gpu and task.gpu_spec)
            named = named or cluster.models[n] in task.gpu_spec.split("|")
            if fits and named and task.memory_mib <= cluster.memory_mib[n]:
                return True
        return False

    def start(self, k: int, place: tuple[int, tuple[int, ...]], now: float) -> None:
        self.where[k], self.starts[k] = place, now
        horizon = self.problem.over_time
        assert horizon is not None
        submit = float(self.problem.tasks.submit_s[k])
        end = horizon.begin_s + horizon.horizon_s
        self.ends[k] = now + min(float(self.problem.tasks.duration_s[k]), end - submit)

    def leave(self, k: int) -> None:
        del self.ends[k]
        task, (n, gpus) = self.problem.tasks.task_class(k), self.where[k]
        node = self.nodes[n]
        node.cpu += task.cpu_milli
        node.memory += task.memory_mib
        node.tasks -= 1
        for g in gpus:
            node.gpus[g] += task.gpu_milli
        there = [i for i in self.ends if self.where[i][0] == n]
        classes = [self.problem.tasks.task_class(i) for i in there]
        node.kinds = {kind_of(other) for other in classes if other.num_gpu}
