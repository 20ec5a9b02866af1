"""Compiled: what a node, and a GPU of it, are worth to a task under every policy."""

from __future__ import annotations

import math

from optgap.heuristics.placement.bestfit import best_fit_score
from optgap.heuristics.placement.dotprod import dot_product_score
from optgap.heuristics.placement.fgd import fgd_score
from optgap.heuristics.placement.gpuclustering import clustering_score
from optgap.heuristics.placement.gpupacking import packing_score
from optgap.heuristics.placement.greedy_exact import exact_score
from optgap.heuristics.placement.node_value import value_of_rest
from optgap.heuristics.placement.pwr import pwr_score
from optgap.heuristics.placement.rule import (
    BESTFIT,
    DOTPROD,
    FGD,
    NONE,
    PACKING,
    PWR,
    VALUE,
)
from optgap.heuristics.placement.tables import Run
from optgap.models.compiled import compiled
from optgap.models.placement.kernels import gpu_profile


@compiled
def move_value(
    run: Run, kind: int, r: int, n: int, free: int, moved: int, old: int, new: int
) -> float:
    """A PWR to VALUE score of request `r` on node `n`, `moved` GPUs going `old` to `new`.

    `free` and `run.profile` describe the node's GPUs before that.
    """
    rule, node, now = run.rule, run.nodes[n], run.state[n]
    workload = run.workload[node["model"]]
    before = now["free_cpu"]
    after = before - run.requests[r]["cpu_milli"]
    woken = moved if old == 1000 else 0
    if kind == FGD:
        return fgd_score(rule.steps, workload, now, after, free, run.profile, moved, old, new)
    if kind == PWR:
        return pwr_score(node, now, after, woken)
    least = exact_score(
        rule.watt_weight, rule.fragment_weight, node, workload, before, after, woken, free,
        run.profile, moved, old, new,
    )  # fmt: skip
    if kind == VALUE:
        gpu_free = run.gpu_free[n]
        least += value_of_rest(rule.values, n, gpu_free, after, moved, old, new)
        least -= value_of_rest(rule.values, n, gpu_free, before, 0, 0, 0)
    return least


@compiled
def best_move(run: Run, kind: int, r: int, n: int) -> tuple[float, int]:
    """The best PWR to VALUE score on node `n`, and the lowest GPU of a share that has it."""
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
        if old < wanted:
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
def score(run: Run, kind: int, r: int, n: int) -> float:
    """The score of request `r` on node `n`, before any normalisation; higher is better."""
    if kind == NONE:
        return 0.0
    if kind <= VALUE:
        return best_move(run, kind, r, n)[0]
    request, now = run.requests[r], run.state[n]
    if kind == BESTFIT:
        return float(best_fit_score(request, now))
    if kind == DOTPROD:
        return float(dot_product_score(request, now))
    if kind == PACKING:
        return float(packing_score(request, now, run.gpu_free[n], run.nodes[n]["gpus"]))
    return float(clustering_score(request, now))
