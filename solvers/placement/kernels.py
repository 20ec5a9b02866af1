"""Compiled dynamic programs over the contents of one node.

Sizes are in units: `milli` in steps of the GPU unit, `cpu` in steps of the CPU unit. Every
table is over "at most u CPU units"; the tables over GPUs are exact in the number of GPUs.
Values of −inf mark what cannot be had.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from optgap.models.placement.arrays import FloatArray, IntArray

Choices = npt.NDArray[Any]
"""(GPUs + 1, CPU units + 1) int32: how an entry of a table came about."""

NOTHING = -1
"""Choice: the start of a table, nothing taken."""
LESS_CPU = -2
"""Choice: the same as with one CPU unit less."""
FIRST_ITEM = -3
"""Choice c at or below this in a GPU table: the multi-GPU item FIRST_ITEM − c."""


@njit(cache=True, nogil=True)
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
                    fill = _grown(fill, room)
                    need = _grown(need, room)
                    item = _grown(item, room)
                    parent = _grown(parent, room)
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


@njit(cache=True, nogil=True)
def _grown(column: IntArray, room: int) -> IntArray:
    wider = np.empty(room, np.int64)
    wider[: len(column)] = column
    return wider


@njit(cache=True, nogil=True)
def fill_gpus(
    size: int,
    gpus: int,
    point: IntArray,
    gain: FloatArray,
    multi_gpus: IntArray,
    multi_cpu: IntArray,
    multi_value: FloatArray,
) -> tuple[FloatArray, Choices]:
    """Best contents of exactly j GPUs, each in use.

    `point` and `gain` are the CPU need and the value of the undominated contents of a single
    GPU, ascending. Returns (gpus + 1, size + 1) tables of value and choice: a point, or
    FIRST_ITEM − i for multi-GPU item i.
    """
    best = np.full((gpus + 1, size + 1), -np.inf)
    choice = np.full((gpus + 1, size + 1), NOTHING, np.int32)
    best[0, :] = 0.0
    for j in range(1, gpus + 1):
        for q in range(len(point)):
            for u in range(point[q], size + 1):
                v = best[j - 1, u - point[q]] + gain[q]
                if v > best[j, u]:
                    best[j, u] = v
                    choice[j, u] = q
        for i in range(len(multi_gpus)):
            before = j - multi_gpus[i]
            if before < 0:
                continue
            for u in range(multi_cpu[i], size + 1):
                v = best[before, u - multi_cpu[i]] + multi_value[i]
                if v > best[j, u]:
                    best[j, u] = v
                    choice[j, u] = FIRST_ITEM - i
    return best, choice


@njit(cache=True, nogil=True)
def add_cpu_tasks(
    gpu_best: FloatArray, cpu: IntArray, value: FloatArray
) -> tuple[FloatArray, Choices]:
    """Best contents of j GPUs and the CPU beside them; choice: a CPU-only item."""
    best = gpu_best.copy()
    choice = np.full(best.shape, NOTHING, np.int32)
    for j in range(best.shape[0]):
        for u in range(best.shape[1]):
            for i in range(len(cpu)):
                if cpu[i] <= u:
                    v = best[j, u - cpu[i]] + value[i]
                    if v > best[j, u]:
                        best[j, u] = v
                        choice[j, u] = i
            if u > 0 and best[j, u - 1] > best[j, u]:
                best[j, u] = best[j, u - 1]
                choice[j, u] = LESS_CPU
    return best, choice


@njit(cache=True, nogil=True)
def walk_cpu_tasks(choice: Choices, cpu: IntArray, j: int, u: int) -> tuple[IntArray, int]:
    """The CPU-only items behind entry (j, u), and the CPU units left to the GPUs."""
    items = np.empty(u + 1, np.int64)
    count = 0
    while choice[j, u] != NOTHING:
        c = choice[j, u]
        if c == LESS_CPU:
            u -= 1
        else:
            items[count] = c
            count += 1
            u -= cpu[c]
    return items[:count], u
