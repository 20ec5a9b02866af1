"""Cluster that changes move by move, and the search for a task's cheapest place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.placement.arrays import BoolArray, IntArray
from optgap.models.placement.kernels import Table, cpu_w, node_table
from optgap.models.placement.migrations import MigrationProblem, Move

WHOLE_GPU = 1000
"""Milli-GPU of a GPU."""
NOTHING = 1e-9
"""Saving up to which a difference is rounding, W."""


@compiled
def landing(
    nodes: Table,
    free_cpu: IntArray,
    gpu_free: IntArray,
    allowed: BoolArray,
    cpu: int,
    num_gpu: int,
    share: int,
    barred_node: int,
    barred: int,
) -> tuple[int, int, float]:
    """Return the node and GPUs (bits) of a task's least added W, and these W; node -1 for none.

    Ties go to the GPU with least left, then to the node with least CPU left.
    """
    best, best_mask, best_w, best_left, best_cpu = -1, 0, np.inf, 0, 0
    for n in range(len(nodes)):
        if not allowed[n] or (n == barred_node and barred == -1):
            continue
        mask, left, busy, found = 0, 0, 0, 0
        for g in range(nodes[n]["gpus"] if num_gpu else 0):
            free = gpu_free[n, g]
            if free < share or (n == barred_node and (barred >> g) & 1):
                continue
            if num_gpu == 1 and (not found or free - share < left):
                mask, left, busy, found = 1 << g, free - share, int(free == WHOLE_GPU), 1
            elif num_gpu > found:  # several GPUs are whole ones
                mask, busy, found = mask | 1 << g, busy + 1, found + 1
        if found < num_gpu:
            continue
        watts = busy * (nodes[n]["gpu_full_w"] - nodes[n]["gpu_idle_w"])
        watts += cpu_w(nodes[n], free_cpu[n] - cpu) - cpu_w(nodes[n], free_cpu[n])
        over = free_cpu[n] - cpu
        if watts < best_w - 1e-9 or (
            watts < best_w + 1e-9 and (left < best_left or (left == best_left and over < best_cpu))
        ):
            best, best_mask, best_w, best_left, best_cpu = n, mask, watts, left, over
    return best, best_mask, best_w


def _bits(mask: int) -> list[int]:
    return [g for g in range(mask.bit_length()) if mask >> g & 1]


class State:
    """Places of all tasks, free amounts of all nodes, and their power.

    Parameters
    ----------
    migration: the problem; the state begins with its current placement.
    """

    def __init__(self, migration: MigrationProblem) -> None:
        self.migration = migration
        problem = migration.problem
        self.tasks = problem.tasks
        self.nodes = node_table(problem, np.arange(len(problem.cluster)))
        widest = max(1, int(problem.cluster.gpus.max()))
        self.free_cpu = np.array(problem.cluster.cpu_milli)
        self.gpu_free = np.full((len(problem.cluster), widest), WHOLE_GPU)
        self.more_free = migration.further.capacity.astype(np.int64).copy()
        self.short = [np.flatnonzero(asks) for asks in migration.further.asks]
        takes = self.tasks.cpu_milli, self.tasks.gpu_milli
        self.takes = list(zip(*(column.tolist() for column in takes), strict=True))
        self.node = np.full(len(problem.tasks), -1, dtype=np.int64)
        self.mask = np.zeros(len(problem.tasks), dtype=np.int64)
        self.on: list[set[int]] = [set() for _ in range(len(problem.cluster))]
        for k in range(len(problem.tasks)):
            self.put(k, int(migration.current.node[k]), int(migration.current.gpu_mask[k]))

    def put(self, k: int, n: int, mask: int) -> None:
        """Put task `k`, which has no place, on node `n`."""
        self._change(k, n, mask, 1)
        self.node[k], self.mask[k] = n, mask
        self.on[n].add(k)

    def take(self, k: int) -> tuple[int, int]:
        """Take task `k` off its node, and return its place."""
        n, mask = int(self.node[k]), int(self.mask[k])
        self._change(k, n, mask, -1)
        self.node[k], self.mask[k] = -1, 0
        self.on[n].discard(k)
        return n, mask

    def _change(self, k: int, n: int, mask: int, sign: int) -> None:
        cpu, share = self.takes[k]
        self.free_cpu[n] -= sign * cpu
        if len(self.short[k]):
            self.more_free[:, n] -= sign * self.migration.further.asks[k]
        for g in _bits(mask):
            self.gpu_free[n, g] -= sign * share

    def move(self, move: Move) -> None:
        """Carry out one move."""
        self.take(move.task)
        self.put(move.task, move.to_node, move.gpu_mask)

    def groups(self, n: int) -> Iterator[list[int]]:
        """Yield the tasks of each GPU of node `n` in use that may all move, each group once."""
        seen: set[int] = set()
        for g in range(int(self.nodes[n]["gpus"])):
            members = [k for k in sorted(self.on[n]) if self.mask[k] >> g & 1]
            movable = all(self.migration.movable[k] for k in members)
            if members and members[0] not in seen and movable:
                seen.update(members)
                yield members

    def power(self, n: int) -> float:
        """Return the power of node `n`, W."""
        node = self.nodes[n]
        gpus = int(node["gpus"])
        busy = int((self.gpu_free[n, :gpus] < WHOLE_GPU).sum())
        idle_w, full_w = float(node["gpu_idle_w"]), float(node["gpu_full_w"])
        return busy * full_w + (gpus - busy) * idle_w + self.cpu_power(n, int(self.free_cpu[n]))

    def cpu_power(self, n: int, free_milli: int) -> float:
        """Return the power of node `n`'s CPUs with so many milli-vCPU free, W."""
        problem = self.migration.problem
        return problem.power.cpu_w(int(problem.cluster.cpu_milli[n]), free_milli)

    def best(self, k: int, barred_node: int, barred: int) -> tuple[int, int, float]:
        """Return the `landing` of task `k`, which has no place at the moment."""
        tasks, further = self.tasks, self.migration.further
        allowed = self.migration.allowed[k]
        for r in self.short[k]:
            allowed = allowed & (self.more_free[r] >= further.asks[k, r])
        n, mask, watts = landing(
            self.nodes, self.free_cpu, self.gpu_free, allowed, int(tasks.cpu_milli[k]),
            int(tasks.num_gpu[k]), int(tasks.gpu_milli[k]), barred_node, barred,
        )  # fmt: skip
        return int(n), int(mask), float(watts)

    def fits(self, k: int, n: int, mask: int) -> bool:
        """Tell whether task `k`, which has no place at the moment, fits there."""
        enough = (self.more_free[:, n] >= self.migration.further.asks[k])[self.short[k]].all()
        return bool(enough) and all(self.gpu_free[n, g] >= self.takes[k][1] for g in _bits(mask))
