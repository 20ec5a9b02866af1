"""Decision of a built-in policy about one row of tasks, compiled: its node and its GPUs.

Nodes are in order of rank, so the first of several best nodes wins ties.
"""

from __future__ import annotations

import math

from optgap.heuristics.placement.rule import BEST, NONE, RANDOM, VALUE
from optgap.heuristics.placement.scores import baseline_score, best_fit_gpu, best_move
from optgap.heuristics.placement.tables import PlacementRun
from optgap.models.compiled import inner
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.kernels import Row, Table, buckets, cpu_w, fragment, gpu_profile, gpu_w


@inner
def renew(node: Row, now: Row, gpu_free: IntArray, workload: Table, profile: Table) -> None:
    """Recompute the fields of a node that follow from its free amounts."""
    most = -1
    whole = 0
    for g in range(node["gpus"]):
        most = max(most, gpu_free[g])
        if gpu_free[g] == 1000:
            whole += 1
    free = gpu_profile(workload, gpu_free, node["gpus"], profile)
    now["most_free"] = most
    now["whole"] = whole
    now["free_gpu"] = free
    now["fragment"] = fragment(buckets(workload, now["free_cpu"], free, profile, 0, 0, 0))
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
def choose_node(run: PlacementRun, k: int) -> int:
    """Return the node for arrival `k`: the highest total, then the lowest rank; -1 for none.

    The feasible nodes are listed with their scores first. Without scores the search ends at the
    first one, unless one is to be drawn.
    """
    rule, state, found = run.rule, run.state, run.found
    any_will_do = rule.first == NONE and not rule.random_node
    r, memory = run.arrivals[k]["request"], run.arrivals[k]["memory_mib"]
    request, accepts = run.requests[r], run.accepts[r]
    size = 0
    for n in range(len(state)):
        now = state[n]
        if not (feasible(request, memory, now) and accepts[now["model"]]):
            continue
        if any_will_do:
            return n
        known = run.cache[request["cached"], n]
        if rule.first != NONE and (request["cached"] == 0 or known["stamp"] != now["changes"]):
            known["stamp"], gpus = now["changes"], run.nodes[n]["gpus"]
            for by in range(2):  # each score once in the machine code
                kind, value = rule.second if by == 0 else rule.first, 0.0
                if kind > VALUE:
                    value = baseline_score(kind, request, now, run.gpu_free[n], gpus)
                elif kind != NONE:
                    value = best_move(run, kind, r, n)[0]
                known["second"] = known["first"]
                known["first"] = value
        found[size]["node"] = n
        found[size]["first"] = known["first"]
        found[size]["second"] = known["second"]
        size += 1
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
    """Give arrival `k` its resources of node `n`; take these back with a `sign` of -1."""
    node, now, gpu_free = run.nodes[n], run.state[n], run.gpu_free[n]
    request = run.requests[run.arrivals[k]["request"]]
    now["free_cpu"] -= sign * request["cpu_milli"]
    now["free_memory"] -= sign * run.arrivals[k]["memory_mib"]
    now["tasks"] += sign
    now["changes"] += 1
    for g in range(node["gpus"]):
        if mask >> g & 1:
            gpu_free[g] -= sign * request["gpu_milli"]
    bit = request["bit"]
    if bit >= 0:
        run.kinds[n, bit] += sign
        if run.kinds[n, bit] == 0:
            now["kinds"] -= request["kind"]
        else:
            now["kinds"] |= request["kind"]
    renew(node, now, gpu_free, run.workload[now["model"]], run.profile)
