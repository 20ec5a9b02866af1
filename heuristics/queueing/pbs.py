"""PBS, the Predictive Backfill Scheduler (HPS/PBS/SBS): three rules, pairs and a fallback.

The rules apply to the jobs that fit; a job has run time t, n GPUs and `it` iterations:

    eff_j = it_j/(n_j·t_j)       work per GPU and time
    1. efficiency: the best, if eff_1 ≥ (1 + τ)·eff_2, or alone
    -  pairs (a, b) on one node, n_a + n_b ≤ node_cap, |t_a − t_b| ≤ Δ·max(t_a, t_b):
       the highest (it_a + it_b)/(n_a·t_a + n_b·t_b)
    2. gap filling: of the jobs with n < γ, the shortest
    3. blocking avoidance: of the jobs with t < T, the fewest GPUs
    4. fallback: the shortest

The efficiency of a pair is a mean of its jobs' efficiencies. The paper does not say when pairs are
tried, so ``pair_stage`` decides. The paper gives no values of γ, T and Δ.
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import QueueRun, rounded
from optgap.models.compiled import inner
from optgap.models.queueing.arrays import FloatArray
from optgap.solvers.queueing.online import WAITING

GAMMA = 4
"""Threshold γ: jobs of fewer GPUs fill gaps."""
MEDIUM_S = 7200.0
"""Threshold T, s: shorter jobs are taken to avoid blocking."""
NODE_CAP = 8
"""Largest number of GPUs of a pair, which shares a node."""
STAGES = {"off": 0, "after_rule1": 1, "first": 2}


@inner
def pbs_picks(run: QueueRun) -> int:
    """Write a job or a pair to `picks`, by the rules in turn; return the number of jobs."""
    rule, online, efficiency = run.rule, run.online, run.efficiency
    if rule.pairs == 2 and _best_pair(run):
        return 2
    first = second = small = brief = shortest = -1
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        if online.fit[online.cls[j]] == 0:
            continue
        if first < 0 or _ahead(efficiency, j, first):
            first, second = j, first
        elif second < 0 or _ahead(efficiency, j, second):
            second = j
        t, n = online.estimate[j], online.truth.gpus[j]
        if n < GAMMA and (small < 0 or t < online.estimate[small]):
            small = j
        if t < MEDIUM_S and (
            brief < 0
            or n < online.truth.gpus[brief]
            or (n == online.truth.gpus[brief] and t < online.estimate[brief])
        ):
            brief = j
        if shortest < 0 or t < online.estimate[shortest]:
            shortest = j
    run.picks[0] = small if small >= 0 else brief if brief >= 0 else shortest
    if second < 0 or efficiency[first] >= (1 + rule.tau) * efficiency[second]:
        run.picks[0] = first
    elif rule.pairs == 1 and _best_pair(run):
        return 2
    return 1


@inner
def _ahead(efficiency: FloatArray, a: int, b: int) -> bool:
    """Tell whether job a is more efficient than job b, or as efficient and earlier."""
    return bool(efficiency[a] > efficiency[b] or (efficiency[a] == efficiency[b] and a < b))


@inner
def _best_pair(run: QueueRun) -> bool:
    """Write the best pair to `picks`, the earlier job first; return False if there is none.

    A pair's score is a weighted mean of its jobs' efficiencies. The search therefore goes by the
    more efficient job, from the best down, until this job is no better than a pair found.
    """
    online, efficiency = run.online, run.efficiency
    gpus, waiting, room = online.truth.gpus, online.tally[WAITING], online.truth.g
    while room > 0 and online.level[room] == 0:
        room -= 1
    cap = min(NODE_CAP, room)
    best, first, second, last = -1.0, -1, -1, -1
    while True:
        a = -1
        for p in range(waiting):
            j = online.queue[p]
            if online.fit[online.cls[j]] == 0 or gpus[j] >= cap:
                continue
            if last < 0 or _ahead(efficiency, last, j):
                a = j if a < 0 or _ahead(efficiency, j, a) else a
        if a < 0 or efficiency[a] < best:
            break
        if efficiency[a] == best and a > first:
            break
        last, ta = a, online.estimate[a]
        for p in range(waiting):
            b = online.queue[p]
            tb = online.estimate[b]
            if b == a or online.fit[online.cls[b]] == 0 or gpus[a] + gpus[b] > cap:
                continue
            if abs(ta - tb) > run.rule.spread * max(ta, tb):
                continue
            work = gpus[a] * ta + gpus[b] * tb
            score = rounded((run.iterations[a] + run.iterations[b]) / work)
            one, other = min(a, b), max(a, b)
            tie = score == best and (one < first or (one == first and other < second))
            if score > best or tie:
                best, first, second = score, one, other
    if first >= 0:
        run.picks[0], run.picks[1] = first, second
    return first >= 0
