"""Choice of nodes for start times: best fit in order of start."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import fits, place, take
from optgap.models.times import freed_s

if TYPE_CHECKING:
    from optgap.models.queueing.problem import QueueingProblem


class Cluster:
    """Free GPUs of a problem's nodes, and who holds which."""

    def __init__(self, problem: QueueingProblem) -> None:
        nodes, self.g = problem.shape
        self.free: IntArray = np.full(nodes, self.g, dtype=np.int64)
        self.level: IntArray = np.zeros(self.g + 1, dtype=np.int64)
        self.level[self.g] = nodes
        self.held: dict[int, list[tuple[int, int]]] = {}

    def copy(self) -> Cluster:
        """Return a cluster of its own in the same state."""
        twin = copy(self)
        twin.free, twin.level = self.free.copy(), self.level.copy()
        twin.held = {job: list(pairs) for job, pairs in self.held.items()}
        return twin

    def fits(self, n: int) -> bool:
        """Tell whether a job of n GPUs can be placed now."""
        return bool(fits(self.free, self.level, n, self.g))

    def start(self, job: int, n: int) -> list[tuple[int, int]]:
        """Give `job` n GPUs by best fit, which must fit; (node, GPUs) pairs."""
        node = np.zeros(n // self.g + 1, dtype=np.int64)
        used = place(self.free, self.level, n, self.g, node, 0)
        pairs = [(k, min(n - h * self.g, self.g)) for h, k in enumerate(node[:used].tolist())]
        self.held[job] = pairs
        return pairs

    def end(self, job: int) -> None:
        """Take them back."""
        for node, gpus in self.held.pop(job):
            take(self.free, self.level, node, -gpus)


def best_fit(
    problem: QueueingProblem, start_s: FloatArray, end_s: FloatArray
) -> list[list[tuple[int, int]]]:
    """Return (node, GPUs) pairs per job; none for a job without room, as the referee will see."""
    cluster = Cluster(problem)
    found: list[list[tuple[int, int]]] = [[] for _ in range(len(problem))]
    events: list[tuple[float, int, int]] = []
    for k in np.flatnonzero(np.isfinite(start_s)).tolist():
        start, end = float(start_s[k]), float(end_s[k])
        events.append((start, 1, k))
        events.append((freed_s(start, end), 0, k))
    for _, starts, k in sorted(events):
        n = int(problem.jobs.gpus[k])
        if starts and cluster.fits(n):
            found[k] = cluster.start(k, n)
        elif not starts and k in cluster.held:
            cluster.end(k)
    return found
