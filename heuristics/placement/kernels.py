"""The compiled event loop: one task at a time, every policy through the same cycle.

Nodes stand in order of rank, so that the first of the best is the one that wins ties.
"""

from __future__ import annotations

import math

from optgap.heuristics.placement.tables import (
    BEST,
    BESTFIT,
    DOTPROD,
    EXACT,
    FGD,
    NONE,
    PACKING,
    PWR,
    RANDOM,
    Run,
)
from optgap.models.compiled import compiled
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE
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
"""The largest node's milli-vCPU, by which BestFit and DotProd scale."""
GPU_SCALE = 8000.0
"""The largest node's milli-GPU."""


@compiled
def refresh(run: Run, n: int) -> None:
    """Recompute what is derived from the free amounts of node `n`."""
    node, now, gpu_free = run.nodes[n], run.state[n], run.gpu_free[n]
    most = -1
    whole = 0
    for g in range(node["gpus"]):
        if most < gpu_free[g] <= run.rule.share_limit:
            most = gpu_free[g]
        if gpu_free[g] == 1000:
            whole += 1
    workload = run.workload[node["model"]]
    free = gpu_profile(workload, gpu_free, node["gpus"], run.profile)
    now["most_free"] = most
    now["whole"] = whole
    now["free_gpu"] = free
    now["fragment"] = fragment(buckets(workload, now["free_cpu"], free, run.profile, 0, 0, 0))
    now["power"] = gpu_w(node, node["gpus"] - whole) + cpu_w(node, now["free_cpu"])


@compiled
def refresh_all(run: Run) -> None:
    """`refresh` every node."""
    for n in range(len(run.nodes)):
        refresh(run, n)


@compiled
def feasible(request: Row, memory_mib: int, now: Row) -> bool:
    """Whether a node has what is requested, Eq. 6 as implemented; its GPU model apart."""
    if now["free_cpu"] < request["cpu_milli"] or now["free_memory"] < memory_mib:
        return False
    if now["tasks"] >= TASKS_PER_NODE:
        return False
    if request["num_gpu"] == 0:
        return True
    if request["gpu_milli"] == 1000:
        return bool(now["whole"] >= request["num_gpu"])
    return bool(now["most_free"] >= request["gpu_milli"])


@compiled
def fgd_points(steps: FloatArray, decrease: float) -> int:
    """trunc(100·sigmoid(decrease)): how many of the steps a decrease in GPUs reaches."""
    low = 0
    high = len(steps)
    while low < high:
        middle = (low + high) // 2
        if steps[middle] <= decrease:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def move_value(
    run: Run, kind: int, r: int, n: int, free: int, moved: int, old: int, new: int
) -> float:
    """The PWR, FGD or EXACT score of request `r` on node `n`, `moved` GPUs going `old` to `new`.

    `free` and `run.profile` describe the node's GPUs before that.
    """
    rule, node, now = run.rule, run.nodes[n], run.state[n]
    workload = run.workload[node["model"]]
    before = now["free_cpu"]
    after = before - run.requests[r]["cpu_milli"]
    woken = moved if old == 1000 else 0
    if kind == FGD:
        left = fragment(buckets(workload, after, free, run.profile, moved, old, new))
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
            workload, before, after, free, run.profile, moved, old, new
        )
    return -cost


@compiled
def best_move(run: Run, kind: int, r: int, n: int) -> tuple[float, int]:
    """The best PWR, FGD or EXACT score on node `n`, and the lowest GPU of a share that has it."""
    node, gpu_free = run.nodes[n], run.gpu_free[n]
    count, wanted = run.requests[r]["num_gpu"], run.requests[r]["gpu_milli"]
    free = 0
    if kind != PWR:
        free = gpu_profile(run.workload[node["model"]], gpu_free, node["gpus"], run.profile)
    if count == 0:
        return move_value(run, kind, r, n, free, 0, 0, 0), -1
    if wanted == 1000:
        return move_value(run, kind, r, n, free, count, 1000, 0), -1
    best = -math.inf
    chosen = -1
    for g in range(node["gpus"]):
        old = gpu_free[g]
        if not wanted <= old <= run.rule.share_limit:
            continue
        fresh = True  # a GPU like an earlier one cannot score higher
        for h in range(g):
            if gpu_free[h] == old:
                fresh = False
        if fresh:
            value = move_value(run, kind, r, n, free, 1, old, old - wanted)
            if value > best:
                best = value
                chosen = g
    return best, chosen


@compiled
def best_fit_score(request: Row, now: Row) -> int:
    """BestFit: what is left of CPU and GPU, less is better."""
    wanted = request["num_gpu"] * request["gpu_milli"]
    left = (now["free_cpu"] - request["cpu_milli"]) / CPU_SCALE * 0.5
    left += (now["free_gpu"] - wanted) / GPU_SCALE * 0.5
    return math.trunc(100 * (1 - left))


@compiled
def dot_product_score(request: Row, now: Row) -> int:
    """DotProd: the product of what is free and what is requested, less is better."""
    wanted = request["num_gpu"] * request["gpu_milli"]
    dot = (now["free_cpu"] / CPU_SCALE) * (request["cpu_milli"] / CPU_SCALE)
    dot += (now["free_gpu"] / GPU_SCALE) * (wanted / GPU_SCALE)
    return math.trunc(100 * (1 - dot / 2))


@compiled
def best_fit_gpu(gpu_free: IntArray, gpus: int, wanted: int, limit: int) -> int:
    """The GPU with the least free amount that suffices, the lowest of equals; -1 for none."""
    chosen = -1
    for g in range(gpus):
        if wanted <= gpu_free[g] <= limit and (chosen < 0 or gpu_free[g] < gpu_free[chosen]):
            chosen = g
    return chosen


@compiled
def packing_score(request: Row, now: Row, gpu_free: IntArray, gpus: int) -> int:
    """GpuPacking: used GPUs before idle GPUs of active nodes before idle nodes."""
    if request["num_gpu"] == 0:
        return 0
    if now["whole"] == gpus:
        return max(33 - gpus, gpus)
    if request["gpu_milli"] == 1000:
        return max(50 - request["num_gpu"], 33)
    free = gpu_free[best_fit_gpu(gpu_free, gpus, request["gpu_milli"], 1000)]
    if free == 1000:
        return 49
    return max(100 - free // 10 // 10, 50)


@compiled
def clustering_score(request: Row, now: Row) -> int:
    """GpuClustering: nodes that serve this kind of task, and those with less free GPU."""
    if request["num_gpu"] == 0:
        return 0
    base = math.trunc(25 * (GPU_SCALE - now["free_gpu"]) / GPU_SCALE)
    if now["kinds"] == request["kind"]:
        return base + 75
    if now["kinds"] & request["kind"]:
        return base + 50
    if now["kinds"] == 0:
        return base + 25
    return base


@compiled
def score(run: Run, kind: int, r: int, n: int) -> float:
    """The score of request `r` on node `n`, before any normalisation; higher is better."""
    if kind == NONE:
        return 0.0
    if kind <= EXACT:
        return best_move(run, kind, r, n)[0]
    request, now = run.requests[r], run.state[n]
    if kind == BESTFIT:
        return float(best_fit_score(request, now))
    if kind == DOTPROD:
        return float(dot_product_score(request, now))
    if kind == PACKING:
        return float(packing_score(request, now, run.gpu_free[n], run.nodes[n]["gpus"]))
    return float(clustering_score(request, now))


@compiled
def candidates(run: Run, k: int) -> int:
    """List the feasible nodes of arrival `k` with their scores; returns how many there are.

    Without scores the first will do, unless one is to be drawn.
    """
    # Taken out of `run` once: handing all of it to a function costs more than that does.
    first, second = run.rule.first, run.rule.second
    state, cache, found = run.state, run.cache, run.found
    any_will_do = first == NONE and not run.rule.random_node
    r, memory = run.arrivals[k]["request"], run.arrivals[k]["memory_mib"]
    request, accepts = run.requests[r], run.accepts[r]
    row = request["cached"]
    size = 0
    for n in range(len(state)):
        if not (feasible(request, memory, state[n]) and accepts[state[n]["model"]]):
            continue
        found[size]["node"] = n
        if any_will_do:
            return 1
        if first != NONE:
            known = cache[row, n]
            if row == 0 or known["stamp"] != state[n]["tasks"]:
                known["stamp"] = state[n]["tasks"]
                known["first"] = score(run, first, r, n)
                known["second"] = score(run, second, r, n)
            found[size]["first"] = known["first"]
            found[size]["second"] = known["second"]
        size += 1
    return size


@compiled
def choose_node(run: Run, k: int) -> int:
    """The node for arrival `k`: the highest total, the lowest rank of equals; -1 for none."""
    rule, found = run.rule, run.found
    size = candidates(run, k)
    if size == 0:
        return -1
    if rule.random_node:
        return found[min(size - 1, int(run.arrivals[k]["node_draw"] * size))]["node"]
    low = high = found[0]["first"]
    for i in range(1, size):
        low = min(low, found[i]["first"])
        high = max(high, found[i]["first"])
    best = -math.inf
    chosen = -1
    for i in range(size):
        value = found[i]["first"]
        if rule.normalise:
            # all alike: every node gets the same, which cancels out
            value = 100.0
            if high > low:
                value = float(int(found[i]["first"] - low) * 100 // int(high - low))
        total = rule.first_weight * value + rule.second_weight * found[i]["second"]
        if total > best:
            best = total
            chosen = found[i]["node"]
    return chosen


@compiled
def choose_share_gpu(run: Run, k: int, n: int) -> int:
    """The GPU of node `n` for the fractional task `k`."""
    rule, gpu_free, gpus = run.rule, run.gpu_free[n], run.nodes[n]["gpus"]
    r = run.arrivals[k]["request"]
    wanted = run.requests[r]["gpu_milli"]
    if rule.gpu == BEST:
        return best_fit_gpu(gpu_free, gpus, wanted, rule.share_limit)
    if rule.gpu <= EXACT:
        return best_move(run, rule.gpu, r, n)[1]
    skip = 0
    if rule.gpu == RANDOM:
        size = 0
        for g in range(gpus):
            if wanted <= gpu_free[g] <= rule.share_limit:
                size += 1
        skip = min(size - 1, int(run.arrivals[k]["gpu_draw"] * size))
    for g in range(gpus):
        if wanted <= gpu_free[g] <= rule.share_limit:
            if skip == 0:
                return g
            skip -= 1
    return -1


@compiled
def choose_gpus(run: Run, k: int, n: int) -> int:
    """The GPUs of node `n` for arrival `k`, as bits; whole GPUs are the lowest idle ones."""
    request = run.requests[run.arrivals[k]["request"]]
    left = request["num_gpu"]
    if left == 0:
        return 0
    if request["gpu_milli"] < 1000:
        return 1 << choose_share_gpu(run, k, n)
    mask = 0
    for g in range(run.nodes[n]["gpus"]):
        if left > 0 and run.gpu_free[n, g] == 1000:
            mask |= 1 << g
            left -= 1
    return mask


@compiled
def commit(run: Run, k: int, n: int, mask: int) -> None:
    """Give arrival `k` its resources."""
    now = run.state[n]
    request = run.requests[run.arrivals[k]["request"]]
    now["free_cpu"] -= request["cpu_milli"]
    now["free_memory"] -= run.arrivals[k]["memory_mib"]
    now["kinds"] |= request["kind"]
    now["tasks"] += 1
    for g in range(run.nodes[n]["gpus"]):
        if mask >> g & 1:
            run.gpu_free[n, g] -= request["gpu_milli"]
    refresh(run, n)


@compiled
def place_arrivals(run: Run, start: int, stop: int, node: IntArray, gpu_mask: IntArray) -> None:
    """Place arrivals `start` to `stop` - 1, noting nodes by rank (-1: failed) and GPU bits."""
    for k in range(start, stop):
        n = choose_node(run, k)
        node[k] = n
        if n >= 0:
            gpu_mask[k] = choose_gpus(run, k, n)
            commit(run, k, n, gpu_mask[k])
