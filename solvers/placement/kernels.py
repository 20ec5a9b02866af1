"""Compiled dynamic programs over the contents of one node.

Sizes are in units: `milli` in steps of the GPU unit, `cpu` in steps of the CPU unit. Every
table is over "at most u CPU units"; the tables over GPUs are exact in the number of GPUs.
Values of −inf mark what cannot be had. Adding −inf and comparing sums for equality are both
exact, so what a table holds can be traced without having been noted down.
"""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.placement.arrays import FloatArray, IntArray


@compiled
def share_one_gpu(
    size: int, steps: int, milli: IntArray, cpu: IntArray, value: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Undominated contents of one GPU, for every filling.

    A content is dominated when another one fills the same number of steps with no more CPU
    and no less value. Returns, per content: the steps it fills, its CPU units (at most
    `size`), the item added last, and the content before that (−1 for none), as a row each; and
    its value. Contents are sorted by steps, then CPU.
    """
    content = np.empty((1024, 4), np.int64)
    worth = np.empty(1024, np.float64)
    start = np.zeros(steps + 2, np.int64)  # contents of m steps: start[m] … start[m+1]
    content[0, 0], content[0, 1], content[0, 2], content[0, 3], worth[0] = 0, 0, -1, -1, 0.0
    start[1] = 1
    count = 1
    # the most valuable content of a need, the item that makes it so and what is before
    top = np.empty(size + 1, np.float64)
    last = np.empty((size + 1, 2), np.int64)
    for m in range(1, steps + 1):
        for u in range(size + 1):
            top[u] = -np.inf
        for i in range(len(milli)):
            before = m - milli[i]
            if before < 0:
                continue
            for k in range(start[before], start[before + 1]):
                u = content[k, 1] + cpu[i]
                if u <= size and worth[k] + value[i] > top[u]:
                    top[u], last[u, 0], last[u, 1] = worth[k] + value[i], i, k
        if count + size + 1 > len(worth):
            room = 2 * (count + size + 1)
            wide, wider = np.empty((room, 4), np.int64), np.empty(room, np.float64)
            for k in range(count):
                wider[k] = worth[k]
                for column in range(4):
                    wide[k, column] = content[k, column]
            content, worth = wide, wider
        best = -np.inf
        for u in range(size + 1):
            if top[u] > best:
                best = top[u]
                content[count, 0], content[count, 1], worth[count] = m, u, best
                content[count, 2], content[count, 3] = last[u, 0], last[u, 1]
                count += 1
        start[m + 1] = count
    return content[:count], worth[:count]


@compiled
def fill_gpus(
    size: int,
    gpus: int,
    point: IntArray,
    gain: FloatArray,
    multi_gpus: IntArray,
    multi_cpu: IntArray,
    multi_value: FloatArray,
) -> FloatArray:
    """Best value of exactly j GPUs, each in use: a (gpus + 1, size + 1) table.

    `point` and `gain` are the CPU need and the value of the undominated contents of a single
    GPU, ascending. Choices are not kept: plain maxima vectorise, and `walk_gpus` finds the
    few choices that are wanted by comparing sums again.
    """
    best = np.empty((gpus + 1, size + 1))
    for j in range(gpus + 1):
        for u in range(size + 1):
            best[j, u] = -np.inf if j > 0 else 0.0
    for j in range(1, gpus + 1):
        for q in range(len(point)):
            _raise(best[j, point[q] :], best[j - 1], gain[q])
        for i in range(len(multi_gpus)):
            if multi_gpus[i] <= j and multi_cpu[i] <= size:
                _raise(best[j, multi_cpu[i] :], best[j - multi_gpus[i]], multi_value[i])
    return best


@compiled
def _raise(row: FloatArray, before: FloatArray, worth: float) -> None:
    for u in range(len(row)):
        row[u] = max(row[u], before[u] + worth)


@compiled
def walk_gpus(
    best: FloatArray,
    point: IntArray,
    gain: FloatArray,
    multi_gpus: IntArray,
    multi_cpu: IntArray,
    multi_value: FloatArray,
    j: int,
    u: int,
) -> tuple[IntArray, IntArray]:
    """Return the single-GPU contents (as indices of `point`) and multi-GPU items behind (j, u)."""
    contents = np.empty(j, np.int64)
    items = np.empty(j, np.int64)
    n_contents = 0
    n_items = 0
    while j > 0:
        found = False
        for q in range(len(point)):
            if point[q] <= u and best[j - 1, u - point[q]] + gain[q] == best[j, u]:
                contents[n_contents] = q
                n_contents += 1
                u -= point[q]
                j -= 1
                found = True
                break
        if found:
            continue
        for i in range(len(multi_gpus)):
            if multi_gpus[i] <= j and multi_cpu[i] <= u:
                before = best[j - multi_gpus[i], u - multi_cpu[i]]
                if before + multi_value[i] == best[j, u]:
                    items[n_items] = i
                    n_items += 1
                    u -= multi_cpu[i]
                    j -= multi_gpus[i]
                    found = True
                    break
        if not found:
            raise RuntimeError("no contents have this value")
    return contents[:n_contents], items[:n_items]


@compiled
def add_cpu_tasks(gpu_best: FloatArray, cpu: IntArray, value: FloatArray) -> FloatArray:
    """Best value of j GPUs and of CPU-only tasks beside them, with at most u CPU units."""
    best = gpu_best.copy()
    for j in range(best.shape[0]):
        row = best[j]
        for u in range(1, len(row)):
            top = max(row[u], row[u - 1])
            for i in range(len(cpu)):
                if cpu[i] <= u:
                    top = max(top, row[u - cpu[i]] + value[i])
            row[u] = top
    return best


@compiled
def walk_cpu_tasks(
    best: FloatArray, gpu_best: FloatArray, cpu: IntArray, value: FloatArray, j: int, u: int
) -> tuple[IntArray, int]:
    """Return the CPU-only items behind entry (j, u), and the CPU units left to the GPUs."""
    items = np.empty(u + 1, np.int64)
    count = 0
    while best[j, u] != gpu_best[j, u]:
        found = False
        for i in range(len(cpu)):
            if cpu[i] <= u and best[j, u - cpu[i]] + value[i] == best[j, u]:
                items[count] = i
                count += 1
                u -= cpu[i]
                found = True
                break
        if not found:
            u -= 1
    return items[:count], u
