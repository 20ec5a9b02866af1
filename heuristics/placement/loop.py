"""Decision of a built-in policy about one row of tasks, compiled: its node and its GPUs.

Nodes are in order of rank, so the first of several best nodes wins ties.
"""

from __future__ import annotations

import math

from optgap.heuristics.placement.rule import BEST, NONE, RANDOM, VALUE
from optgap.heuristics.placement.scores import best_fit_gpu, best_move, score
from optgap.heuristics.placement.tables import PlacementRun
from optgap.models.compiled import compiled, inner
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.kernels import Row, buckets, cpu_w, fragment, gpu_profile, gpu_w


@compiled
def refresh(run: PlacementRun, first: int, stop: int) -> None:
    """Recompute the fields that follow from the free amounts of nodes `first` to `stop` - 1."""
    for n in range(first, stop):
        node, now, gpu_free = run.nodes[n], run.state[n], run.gpu_free[n]
        most = -1
        whole = 0
        for g in range(node["gpus"]):
            most = max(most, gpu_free[g])
            if gpu_free[g] == 1000:
                whole += 1
        workload = run.workload[node["model"]]
        free = gpu_profile(workload, gpu_free, node["gpus"], run.profile)
        now["most_free"] = most
        now["whole"] = whole
        now["free_gpu"] = free
        now["fragment"] = fragment(buckets(workload, now["free_cpu"], free, run.profile, 0, 0, 0))
        now["power"] = gpu_w(node, node["gpus"] - whole) + cpu_w(node, now["free_cpu"])


@inner
def feasible(request: Row, memory_mib: int, now: Row) -> bool:
    """Tell whether a node has the requested capacity, Eq. 6 as implemented, for any GPU model."""
    if now["free_cpu"] < request["cpu_milli"] or now["free_memory"] < memory_mib:
        return False
    if now["tasks"] >= TASKS_PER_NODE:
        return False
    if request["num_gpu"] == 0:
        return True
    if request["gpu_milli"] == 1000:
        return bool(now["whole"] >= request["num_gpu"])
    return bool(now["most_free"] >= request["gpu_milli"])


@inner
def candidates(run: PlacementRun, k: int) -> int:
    """List the feasible nodes of arrival `k` with their scores; return their number.

    Without scores the search ends at the first feasible node, unless one is to be drawn.
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
            if row == 0 or known["stamp"] != state[n]["changes"]:
                known["stamp"] = state[n]["changes"]
                known["first"] = score(run, first, r, n)
                known["second"] = score(run, second, r, n)
            found[size]["first"] = known["first"]
            found[size]["second"] = known["second"]
        size += 1
    return size


@inner
def choose_node(run: PlacementRun, k: int) -> int:
    """Return the node for arrival `k`: the highest total, then the lowest rank; -1 for none."""
    rule, found = run.rule, run.found
    size = candidates(run, k)
    if size == 0:
        return -1
    if rule.random_node:
        drawn = min(size - 1, int(run.arrivals[k]["node_draw"] * size))
        return int(found[drawn]["node"])
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


@inner
def choose_gpus(run: PlacementRun, k: int, n: int) -> int:
    """Return the GPUs of node `n` for arrival `k` as bits; whole GPUs are the lowest idle ones."""
    kind, gpu_free, gpus = run.rule.gpu, run.gpu_free[n], run.nodes[n]["gpus"]
    r = run.arrivals[k]["request"]
    wanted, left, skip = run.requests[r]["gpu_milli"], run.requests[r]["num_gpu"], 0
    if left == 1 and wanted < 1000:
        if kind == BEST:
            return 1 << best_fit_gpu(gpu_free, gpus, wanted)
        if kind <= VALUE:
            return 1 << best_move(run, kind, r, n)[1]
        if kind == RANDOM:
            size = 0
            for g in range(gpus):
                size += gpu_free[g] >= wanted
            skip = min(size - 1, int(run.arrivals[k]["gpu_draw"] * size))
    mask = 0
    for g in range(gpus):
        if left > 0 and gpu_free[g] >= wanted:
            if skip == 0:
                mask |= 1 << g
                left -= 1
            else:
                skip -= 1
    return mask


@inner
def hold(run: PlacementRun, k: int, n: int, mask: int, sign: int) -> None:
    """Give arrival `k` its resources; take these back with a `sign` of -1."""
    now = run.state[n]
    request = run.requests[run.arrivals[k]["request"]]
    now["free_cpu"] -= sign * request["cpu_milli"]
    now["free_memory"] -= sign * run.arrivals[k]["memory_mib"]
    if sign > 0:
        now["kinds"] |= request["kind"]
    now["tasks"] += sign
    now["changes"] += 1
    for g in range(run.nodes[n]["gpus"]):
        if mask >> g & 1:
            run.gpu_free[n, g] -= sign * request["gpu_milli"]
    refresh(run, n, n + 1)
