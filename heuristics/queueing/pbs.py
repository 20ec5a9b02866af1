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

from typing import Any

import numpy as np

from optgap.heuristics.queueing.cluster import begin_on
from optgap.heuristics.queueing.parameters import PbsParams
from optgap.heuristics.queueing.rule import INF, PBS, Rule, require, rounded, simulate
from optgap.heuristics.queueing.tables import BY_EFFICIENCY, BY_TIME, NOW, Run
from optgap.heuristics.queueing.trees import DEPTH, first_waiting, next_waiting
from optgap.models.compiled import inner
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.kernels import node_with, tightest
from optgap.models.result import Outcome
from optgap.models.spec import chosen

GAMMA = 4
"""γ: jobs of fewer GPUs fill gaps."""
MEDIUM_S = 7200.0
"""T: shorter jobs are taken to avoid blocking, s."""
NODE_CAP = 8
"""GPUs of a pair, which shares a node, at most."""
STAGES = {"off": 0, "after_rule1": 1, "first": 2}


def pbs(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """PBS; `given` as in `PbsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(PbsParams, given, "pbs")
    tau, delta = options.tau, options.delta
    require("pbs", "tau", tau, 0 <= tau < 1e6, "at least 0")
    require("pbs", "delta", delta, 0 <= delta <= 1, "from 0 to 1")
    rule = Rule(PBS, tau=float(tau), spread=float(delta), pairs=STAGES[options.pair_stage])
    return simulate(problem, rule, limits=limits, label="pbs")


@inner
def pbs_picks(run: Run) -> int:
    """Leave a job or a pair in `picks`, by the rules in turn; how many jobs that are."""
    rule, jobs, classes = run.rule, run.jobs, run.classes
    room = run.g
    while room > 0 and run.level[NOW][room] == 0:
        room -= 1
    if rule.pairs == 2 and _best_pair(run, room):
        return 2
    j = _ahead_of_all(run)
    if j < 0 and rule.pairs == 1 and _best_pair(run, room):
        return 2
    if j < 0:
        j = _shortest(run, GAMMA - 1)
    if j < 0:  # the smallest of those that are not long
        for c in range(len(classes)):
            if j < 0 and classes[c]["fit"] != 0:
                candidate = first_waiting(run, BY_TIME, c)
                if jobs[candidate]["estimate"] < MEDIUM_S:
                    j = candidate
    if j < 0:
        j = _shortest(run, classes[-1]["gpus"])
    run.picks[0] = j
    return 1


@inner
def _ahead_of_all(run: Run) -> int:
    """Rule 1: the most efficient job that fits if it is (1 + τ) times the next; else -1."""
    jobs, classes = run.jobs, run.classes
    first, second = -1, -1
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        j = first_waiting(run, BY_EFFICIENCY, c)
        at = next_waiting(run, BY_EFFICIENCY, c, run.place[BY_EFFICIENCY, j] + 1)
        after = run.order[BY_EFFICIENCY, classes[c]["first"] + at] if at >= 0 else -1
        for candidate in (j, after):
            if candidate < 0:
                continue
            if first < 0 or _more_efficient(run, candidate, first):
                first, second = candidate, first
            elif second < 0 or _more_efficient(run, candidate, second):
                second = candidate
    if second < 0:
        return first
    enough = (1 + run.rule.tau) * jobs[second]["efficiency"]
    return first if jobs[first]["efficiency"] >= enough else -1


@inner
def _more_efficient(run: Run, a: int, b: int) -> bool:
    one, other = run.jobs[a]["efficiency"], run.jobs[b]["efficiency"]
    return one > other or (one == other and a < b)


@inner
def _best_pair(run: Run, room: int) -> bool:
    """Leave the best pair in `picks`; False when there is none.

    A pair's score is a weighted mean of its jobs' efficiencies, so pairs are looked for by their
    more efficient job, from the most efficient down, until that one is no better than a pair.

    Parameters
    ----------
    room: most GPUs free on one node.
    """
    jobs, classes = run.jobs, run.classes
    cap = min(NODE_CAP, room)
    at = np.zeros(len(classes), dtype=np.int64)
    best, first, second = -1.0, -1, -1
    while True:
        a = -1
        for c in range(len(classes)):
            if classes[c]["fit"] == 0 or classes[c]["gpus"] >= cap or at[c] < 0:
                continue
            at[c] = next_waiting(run, BY_EFFICIENCY, c, at[c])
            if at[c] >= 0:
                j = run.order[BY_EFFICIENCY, classes[c]["first"] + at[c]]
                if a < 0 or _more_efficient(run, j, a):
                    a = j
        if a < 0:
            break
        at[jobs[a]["cls"]] += 1
        top = jobs[a]["efficiency"]
        if top < best or (top == best and a > min(first, second)):
            break
        for c in range(len(classes)):
            if classes[c]["fit"] != 0 and classes[c]["gpus"] + jobs[a]["gpus"] <= cap:
                best, first, second = _partner(run, a, c, best, first, second)
    if first < 0:
        return False
    run.picks[0], run.picks[1] = min(first, second), max(first, second)
    return True


@inner
def _partner(
    run: Run, a: int, c: int, best: float, first: int, second: int
) -> tuple[float, int, int]:
    """The best pair of job a with one of class c, or what was best before."""
    jobs, cls, spread = run.jobs, run.classes[c], run.rule.spread
    ta, wa, ita = jobs[a]["estimate"], jobs[a]["gpus"] * jobs[a]["estimate"], jobs[a]["iterations"]
    tree, order = run.tree[BY_TIME, cls["root"] :], run.order[BY_TIME, cls["first"] :]
    width, size, n = cls["width"], cls["size"], cls["gpus"]
    stack = np.empty(DEPTH, dtype=np.int64)
    spans = np.empty(DEPTH, dtype=np.int64)
    stack[0], spans[0], depth = 1, width, 1
    while depth > 0:
        depth -= 1
        k, span = stack[depth], spans[depth]
        if tree[k] == INF:
            continue
        left = k * span - width
        low = jobs[order[left]]["estimate"]
        high = jobs[order[min(left + span, size) - 1]]["estimate"]
        # every |t - ta| would be more than the spread allows
        if (high < ta and ta - high > spread * ta) or (low > ta and low - ta > spread * low):
            continue
        e = -tree[k]
        weight = n * (low if e * wa <= ita else high)
        top = (ita + e * weight) / (wa + weight)
        if rounded(top * (1 + 1e-12)) < best:
            continue
        if span > 1:
            stack[depth], spans[depth] = 2 * k + 1, span // 2
            stack[depth + 1], spans[depth + 1] = 2 * k, span // 2
            depth += 2
            if tree[2 * k + 1] < tree[2 * k]:
                stack[depth - 2], stack[depth - 1] = stack[depth - 1], stack[depth - 2]
            continue
        b = order[left]
        tb = jobs[b]["estimate"]
        if b == a or abs(ta - tb) > spread * max(ta, tb):
            continue
        score = rounded((ita + jobs[b]["iterations"]) / (wa + n * tb))
        p, q = min(a, b), max(a, b)
        tie = score == best and (p < first or (p == first and q < second))
        if score > best or tie:
            best, first, second = score, p, q
    return best, first, second


@inner
def _shortest(run: Run, most: int) -> int:
    """The job of least run time among those of at most so many GPUs; -1 for none."""
    jobs, classes, best = run.jobs, run.classes, -1
    for c in range(len(classes)):
        if classes[c]["fit"] == 0 or classes[c]["gpus"] > most:
            continue
        j = first_waiting(run, BY_TIME, c)
        t = jobs[j]["estimate"]
        if best < 0 or t < jobs[best]["estimate"] or (t == jobs[best]["estimate"] and j < best):
            best = j
    return best


@inner
def begin_pair(run: Run, now: float) -> None:
    """Start the two jobs in `picks` on one node, the tightest."""
    a, b = run.picks[0], run.picks[1]
    wanted = run.jobs[a]["gpus"] + run.jobs[b]["gpus"]
    f = tightest(run.free[NOW], run.level[NOW], wanted, run.g)
    node = node_with(run.free[NOW], f)
    begin_on(run, a, node, now)
    begin_on(run, b, node, now)
