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
) -> tuple[IntArray, IntArray, FloatArray, IntArray, IntArray]:
    """Undominated contents of one GPU, for every filling.

    A content is dominated when another one fills the same number of steps with no more CPU
    and no less value. Returns, per content: the steps it fills, its CPU units (at most
    `size`), its value, the item added last, and the content before that (−1 for none).
    Contents are sorted by steps, then CPU.
    """
    room = 1024
    fill = np.empty(room, np.int64)
    need = np.empty(room, np.int64)
    worth = np.empty(room, np.float64)
    item = np.empty(room, np.int64)
    parent = np.empty(room, np.int64)
    start = np.zeros(steps + 2, np.int64)  # contents of m steps: start[m] … start[m+1]
    fill[0], need[0], worth[0], item[0], parent[0] = 0, 0, 0.0, -1, -1
    start[1] = 1
    count = 1
    for m in range(1, steps + 1):
        total = 0
        for i in range(len(milli)):
            if milli[i] <= m:
                total += start[m - milli[i] + 1] - start[m - milli[i]]
        c_need = np.empty(total, np.int64)
        c_worth = np.empty(total, np.float64)
        c_item = np.empty(total, np.int64)
        c_parent = np.empty(total, np.int64)
        total = 0
        for i in range(len(milli)):
            before = m - milli[i]
            if before < 0:
                continue
            for k in range(start[before], start[before + 1]):
                if need[k] + cpu[i] <= size:
                    c_need[total] = need[k] + cpu[i]
                    c_worth[total] = worth[k] + value[i]
                    c_item[total] = i
                    c_parent[total] = k
                    total += 1
        order = np.argsort(c_need[:total], kind="mergesort")
        at = 0
        best = -np.inf
        while at < total:
            # the most valuable of those with equal need
            top = order[at]
            at += 1
            while at < total and c_need[order[at]] == c_need[top]:
                if c_worth[order[at]] > c_worth[top]:
                    top = order[at]
                at += 1
            if c_worth[top] > best:
                best = c_worth[top]
                if count == room:
                    room *= 2
                    wide = np.empty((4, room), np.int64)
                    wide[0, :count], wide[1, :count] = fill, need
                    wide[2, :count], wide[3, :count] = item, parent
                    fill, need, item, parent = wide[0], wide[1], wide[2], wide[3]
                    wider = np.empty(room, np.float64)
                    wider[:count] = worth
                    worth = wider
                fill[count] = m
                need[count] = c_need[top]
                worth[count] = best
                item[count] = c_item[top]
                parent[count] = c_parent[top]
                count += 1
        start[m + 1] = count
    return fill[:count], need[:count], worth[:count], item[:count], parent[:count]


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
    best = np.full((gpus + 1, size + 1), -np.inf)
    best[0, :] = 0.0
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
