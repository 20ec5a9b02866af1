"""Compiled scores of a node and of its GPUs for a task, under every policy.

The file of each policy defines its score.
"""

from __future__ import annotations

import math

from optgap.heuristics.placement.rule import (
    BESTFIT,
    DOTPROD,
    FGD,
    PACKING,
    PWR,
    VALUE,
)
from optgap.heuristics.placement.tables import PlacementRun
from optgap.heuristics.placement.values import NodeWorth
from optgap.models.compiled import compiled, inner
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.kernels import (
    Row,
    buckets,
    cpu_w,
    fragment,
    fragment_increase,
    gpu_profile,
    gpu_w,
)

CPU_SCALE = 128_000.0
"""Milli-vCPU of the largest node, by which BestFit and DotProd scale."""
GPU_SCALE = 8000.0
"""Milli-GPU of the largest node."""


@compiled
def fgd_points(steps: FloatArray, decrease: float) -> int:
    """Return trunc(100·sigmoid(decrease)), the number of steps that a decrease in GPUs reaches."""
    low = 0
    high = len(steps)
    while low < high:
        middle = (low + high) // 2
        if steps[middle] <= decrease:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def value_of_rest(
    values: NodeWorth, n: int, gpu_free: IntArray, cpu_left: int, moved: int, old: int, new: int
) -> float:
    """Return the worth (W) of node `n` after `moved` GPUs went from `old` to `new` milli-GPU."""
    idle = 0
    largest = 0
    for free in gpu_free:
        if moved > 0 and free == old:
            moved -= 1
            free = new
        if free == 1000:
            idle += 1
        elif free > largest:
            largest = free
    u, r = cpu_left // values.cpu_milli, largest // values.share_milli
    return float(values.table[values.type_of[n], u, idle, r])


@inner
def move_value(
    run: PlacementRun, kind: int, r: int, n: int, free: int, moved: int, old: int, new: int
) -> float:
    """Return the score (PWR to VALUE) of request `r` if `moved` GPUs of node `n` go `old` to `new`.

    `free` and `run.profile` describe the GPUs of the node before the move.
    """
    rule, node, now, profile = run.rule, run.nodes[n], run.state[n], run.profile
    workload = run.workload[node["model"]]
    before = now["free_cpu"]
    after = before - run.requests[r]["cpu_milli"]
    woken = moved if old == 1000 else 0
    if kind == FGD:
        left = fragment(buckets(workload, after, free, profile, moved, old, new))
        return float(fgd_points(rule.steps, (now["fragment"] - left) / 1000))
    if kind == PWR:
        drawn = gpu_w(node, node["gpus"] - now["whole"] + woken) + cpu_w(node, after)
        return float(math.trunc(now["power"] - drawn))
    cost = 0.0
    if rule.watt_weight != 0:
        watts = (node["gpu_full_w"] - node["gpu_idle_w"]) * woken
        watts += cpu_w(node, after) - cpu_w(node, before)
        cost += rule.watt_weight * watts
    if rule.fragment_weight != 0:
        cost += rule.fragment_weight * fragment_increase(
            workload, before, after, free, profile, moved, old, new
        )
    least = -cost
    if kind == VALUE:
        gpu_free = run.gpu_free[n]
        least += value_of_rest(rule.values, n, gpu_free, after, moved, old, new)
        least -= value_of_rest(rule.values, n, gpu_free, before, 0, 0, 0)
    return least


@inner
def best_move(run: PlacementRun, kind: int, r: int, n: int) -> tuple[float, int]:
    """Return the best score (PWR to VALUE) on node `n`, and for a share the lowest GPU with it."""
    node, gpu_free = run.nodes[n], run.gpu_free[n]
    count, wanted = run.requests[r]["num_gpu"], run.requests[r]["gpu_milli"]
    free = 0
    if kind != PWR:
        free = gpu_profile(run.workload[node["model"]], gpu_free, node["gpus"], run.profile)
    share = count > 0 and wanted < 1000
    best = -math.inf
    chosen = -1
    for g in range(node["gpus"] if share else 1):
        moved, old, new, fresh = count, 1000 if count > 0 else 0, 0, True
        if share:
            moved, old, new = 1, gpu_free[g], gpu_free[g] - wanted
            fresh = new >= 0
            for h in range(g):  # a GPU like an earlier one cannot score higher
                fresh = fresh and gpu_free[h] != old
        if fresh:
            value = move_value(run, kind, r, n, free, moved, old, new)
            if value > best:
                best = value
                chosen = g if share else -1
    return best, chosen


@inner
def best_fit_gpu(gpu_free: IntArray, gpus: int, wanted: int) -> int:
    """Return the GPU with the least sufficient free capacity, the lowest of equals; -1 for none."""
    chosen = -1
    for g in range(gpus):
        if gpu_free[g] >= wanted and (chosen < 0 or gpu_free[g] < gpu_free[chosen]):
            chosen = g
    return chosen


@inner
def baseline_score(kind: int, request: Row, now: Row, gpu_free: IntArray, gpus: int) -> float:
    """Return the score of a node under a policy of `baselines`; higher is better."""
    wanted = request["num_gpu"] * request["gpu_milli"]
    if kind == BESTFIT:
        left = (now["free_cpu"] - request["cpu_milli"]) / CPU_SCALE * 0.5
        left += (now["free_gpu"] - wanted) / GPU_SCALE * 0.5
        return float(math.trunc(100 * (1 - left)))
    if kind == DOTPROD:
        dot = (now["free_cpu"] / CPU_SCALE) * (request["cpu_milli"] / CPU_SCALE)
        dot += (now["free_gpu"] / GPU_SCALE) * (wanted / GPU_SCALE)
        return float(math.trunc(100 * (1 - dot / 2)))
    if request["num_gpu"] == 0:
        return 0.0
    if kind == PACKING:
        if now["whole"] == gpus:
            return float(max(33 - gpus, gpus))
        if request["gpu_milli"] == 1000:
            return float(max(50 - request["num_gpu"], 33))
        free = gpu_free[best_fit_gpu(gpu_free, gpus, request["gpu_milli"])]
        return float(49 if free == 1000 else max(100 - free // 10 // 10, 50))
    base = float(math.trunc(25 * (GPU_SCALE - now["free_gpu"]) / GPU_SCALE))
    if now["kinds"] == request["kind"]:
        return base + 75
    if now["kinds"] & request["kind"]:
        return base + 50
    return base + 25 if now["kinds"] == 0 else base
