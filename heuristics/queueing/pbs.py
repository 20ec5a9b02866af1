"""PBS, the Predictive Backfill Scheduler (HPS/PBS/SBS): three rules, pairs and a fallback.

Among the jobs that fit, t a job's run time, n its GPUs, it its iterations:

    eff_j = it_j/(n_j·t_j)       work per GPU and time
    1. efficiency: the best, if eff_1 ≥ (1 + τ)·eff_2, or alone
    -  pairs (a, b) on one node, n_a + n_b ≤ node_cap, |t_a − t_b| ≤ Δ·max(t_a, t_b):
       the highest (it_a + it_b)/(n_a·t_a + n_b·t_b)
    2. gap filling: of the jobs with n < γ, the shortest
    3. blocking avoidance: of the jobs with t < T, the fewest GPUs
    4. fallback: the shortest

A pair's efficiency is a mean of its jobs', never above the better one's, and the paper does not say
where pairs are tried: ``pair_stage`` does. γ, T and Δ stand there without values.
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import QueueRun, rounded
from optgap.models.compiled import inner
from optgap.models.queueing.arrays import FloatArray
from optgap.solvers.queueing.online import WAITING

GAMMA = 4
"""γ: jobs of fewer GPUs fill gaps."""
MEDIUM_S = 7200.0
"""T: shorter jobs are taken to avoid blocking, s."""
NODE_CAP = 8
"""GPUs of a pair, which shares a node, at most."""
STAGES = {"off": 0, "after_rule1": 1, "first": 2}


@inner
def pbs_picks(run: QueueRun) -> int:
    """Leave a job or a pair in `picks`, by the rules in turn; how many jobs that are."""
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
    """Leave the best pair in `picks`, the earlier job first; False when there is none.

    A pair's score is a weighted mean of its jobs' efficiencies, so pairs are looked for by their
    more efficient job, from the most efficient down, until that one is no better than a pair.
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
