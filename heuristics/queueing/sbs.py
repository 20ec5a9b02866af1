"""SBS, the Smart Batch Scheduler (HPS/PBS/SBS): batches of like jobs of one model family.

t a job's run time, n its GPUs, it its iterations; a batch B of two to four jobs of one family is
feasible if it can be placed as a whole, Σ n ≤ G_max and Sim(B) ≥ θ, and the one of the best score
starts:

    Sim(B) = 1/(1 + σ_t² + σ_g²)          variances of run times and of GPU counts
    Eff(B) = Σ it/(Σ n · max t)
    Score(B) = Eff(B) · Sim(B)

Without one, the job of the best it/(n·t)/(1 + n/4). In seconds only equal run times are alike, so t
is in hours in σ_t² (``time_unit_s``). A batch of one would always win. The paper leaves open how
batches are found: here they are runs of neighbours in two sorted lists of each family, by (t, n)
and by (n, t), or all sets in a family of few waiting jobs (``every``).
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.parameters import SbsParams
from optgap.heuristics.queueing.rule import SBS, Rule, require, rounded, simulate
from optgap.heuristics.queueing.tables import AHEAD, ARRIVED, BY_EFFICIENCY, NOW, Run
from optgap.heuristics.queueing.trees import first_waiting
from optgap.models.compiled import inner
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import IntArray
from optgap.models.queueing.kernels import fits, place
from optgap.models.result import Outcome
from optgap.models.spec import chosen

BATCH_GPUS, BATCH_JOBS = 8, 4
"""GPUs of a batch, G_max, and jobs of a batch, at most."""


def sbs(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """SBS; `given` as in `SbsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(SbsParams, given, "sbs")
    theta, unit_s, lookahead = options.theta, options.time_unit_s, options.lookahead
    require("sbs", "theta", theta, 0 <= theta <= 1, "from 0 to 1")
    require("sbs", "time_unit_s", unit_s, 0 < unit_s < 1e12, "positive seconds")
    require("sbs", "lookahead", lookahead, lookahead >= 0, "a number of jobs, or 0 for all")
    require("sbs", "every", options.every, 0 <= options.every <= 64, "from 0 to 64 jobs")
    rule = Rule(SBS, similar=float(theta), unit=float(unit_s), every=options.every)
    return simulate(problem, rule, limits=limits, lookahead=lookahead, label="sbs")


@inner
def sbs_picks(run: Run) -> int:
    """Leave the best batch, or the job of best efficiency for its GPUs, in `picks`; how many."""
    jobs, classes = run.jobs, run.classes
    free = 0
    for f in run.free[NOW]:
        free += f
    size = _best_batch(run, free)
    if size > 0:
        return size
    best, best_score = -1, -1.0
    for c in range(len(classes)):
        if classes[c]["fit"] == 0:
            continue
        j = first_waiting(run, BY_EFFICIENCY, c)
        score = jobs[j]["efficiency"] / (1 + classes[c]["gpus"] / 4)
        if score > best_score or (score == best_score and j < best):
            best, best_score = j, score
    run.picks[0] = best
    return 1


@inner
def _best_batch(run: Run, free: int) -> int:
    """Leave the best batch in `picks` and return its size; 0 when there is none."""
    most = min(BATCH_GPUS, free)
    best, size = -1.0, 0
    for f in range(len(run.families)):
        count = run.families[f]["count"]
        if count <= run.rule.every:
            best, size = _subsets(run, run.lists[0, f], count, most, best, size)
            continue
        for by in range(2):
            best, size = _windows(run, run.lists[by, f], count, most, best, size)
    return size


@inner
def _subsets(
    run: Run, listed: IntArray, count: int, most: int, best: float, size: int
) -> tuple[float, int]:
    """The best of all sets of two to four jobs of one family that fit."""
    jobs, classes = run.jobs, run.classes
    for a in range(count):
        i = listed[a]
        if classes[jobs[i]["cls"]]["fit"] == 0 or jobs[i]["gpus"] >= most:
            continue
        for b in range(a + 1, count):
            j = listed[b]
            pair = jobs[i]["gpus"] + jobs[j]["gpus"]
            if classes[jobs[j]["cls"]]["fit"] == 0 or pair > most:
                continue
            best, size = _better(run, (-1, -1, i, j), 2, most, best, size)
            if pair == most:
                continue
            for c in range(b + 1, count):
                k = listed[c]
                triple = pair + jobs[k]["gpus"]
                if classes[jobs[k]["cls"]]["fit"] == 0 or triple > most:
                    continue
                best, size = _better(run, (-1, i, j, k), 3, most, best, size)
                if triple == most:
                    continue
                for d in range(c + 1, count):
                    m = listed[d]
                    if classes[jobs[m]["cls"]]["fit"] and triple + jobs[m]["gpus"] <= most:
                        best, size = _better(run, (i, j, k, m), 4, most, best, size)
    return best, size


@inner
def _better(
    run: Run, recent: tuple[int, int, int, int], length: int, most: int, best: float, size: int
) -> tuple[float, int]:
    """The last `length` jobs, left in `picks`, if they are a better batch than what is there."""
    score = _score(run, recent, length, most)
    if score < 0 or score < best or (score == best and length < size):
        return best, size
    if not _together(run, recent, length):
        return best, size
    if score == best and length == size and not _earlier(recent, run.picks, size):
        return best, size
    for i in range(length):
        run.picks[i] = recent[4 - length + i]
    return score, length


@inner
def _windows(
    run: Run, listed: IntArray, count: int, most: int, best: float, size: int
) -> tuple[float, int]:
    """The best of the runs of two to four jobs that fit, in one list of one family."""
    jobs, classes = run.jobs, run.classes
    found = 0  # jobs of the list that fit, the last of them in `recent`
    recent = (-1, -1, -1, -1)
    for k in range(count):
        j = listed[k]
        if classes[jobs[j]["cls"]]["fit"] == 0:
            continue
        recent = (recent[1], recent[2], recent[3], j)
        found += 1
        for length in range(2, min(BATCH_JOBS, found) + 1):
            best, size = _better(run, recent, length, most, best, size)
    return best, size


@inner
def _score(run: Run, recent: tuple[int, int, int, int], length: int, most: int) -> float:
    """Eff·Sim of the last `length` jobs, rounded; -1 when the batch is not allowed."""
    jobs, unit = run.jobs, run.rule.unit
    gpus, work, longest, time = 0, 0.0, 0.0, 0.0
    for i in range(4 - length, 4):
        j = recent[i]
        gpus += jobs[j]["gpus"]
        work += jobs[j]["iterations"]
        longest = max(longest, jobs[j]["estimate"])
        time += jobs[j]["estimate"] / unit
    if gpus > most:
        return -1.0
    mean_time, mean_gpus = time / length, gpus / length
    var_time = var_gpus = 0.0
    for i in range(4 - length, 4):
        j = recent[i]
        var_time += (jobs[j]["estimate"] / unit - mean_time) ** 2
        var_gpus += (jobs[j]["gpus"] - mean_gpus) ** 2
    similar = 1 / (1 + var_time / length + var_gpus / length)
    if rounded(similar) < run.rule.similar:
        return -1.0
    return rounded(work / (gpus * longest) * similar)


@inner
def _together(run: Run, recent: tuple[int, int, int, int], length: int) -> bool:
    """Whether the jobs can be placed one after another, the largest first."""
    jobs = run.jobs
    run.free[AHEAD][:] = run.free[NOW]
    run.level[AHEAD][:] = run.level[NOW]
    left = length
    for size in range(BATCH_GPUS, 0, -1):
        for i in range(4 - length, 4):
            n = jobs[recent[i]]["gpus"]
            if n != size:
                continue
            if not fits(run.free[AHEAD], run.level[AHEAD], n, run.g):
                return False
            place(run.free[AHEAD], run.level[AHEAD], n, run.g, run.spare[0], run.spare[1], 0)
            left -= 1
    return left == 0


@inner
def _earlier(recent: tuple[int, int, int, int], picks: IntArray, size: int) -> bool:
    """Whether a window's jobs, sorted, come before those of another of the same size."""
    low = -1
    for _ in range(size):
        a = b = -1
        for i in range(size):
            x, y = recent[4 - size + i], picks[i]
            if x > low and (a < 0 or x < a):
                a = x
            if y > low and (b < 0 or y < b):
                b = y
        if a != b:
            return a < b
        low = a
    return False


@inner
def largest_first(run: Run, size: int) -> None:
    """Order a batch by GPUs, descending; equal ones as in the window."""
    picks, jobs = run.picks, run.jobs
    for i in range(1, size):
        for k in range(i, 0, -1):
            if jobs[picks[k]]["gpus"] > jobs[picks[k - 1]]["gpus"]:
                picks[k], picks[k - 1] = picks[k - 1], picks[k]


@inner
def line_up(run: Run, f: int) -> None:
    """Let the jobs of family f that have arrived into its lists, as far as there is room."""
    family, jobs = run.families[f], run.jobs
    by_time, by_size = run.lists[0, f], run.lists[1, f]
    while family["count"] < len(by_time) and family["next"] < family["end"]:
        j = run.member[family["next"]]
        if j >= run.tally[ARRIVED]:
            return  # still to come
        family["next"] += 1
        if jobs[j]["waiting"] == 0:
            continue
        size = family["count"]
        _slip_in(by_time, jobs["time_rank"], size, j)
        _slip_in(by_size, jobs["size_rank"], size, j)
        family["count"] = size + 1


@inner
def drop_out(run: Run, j: int) -> None:
    """Take a job out of its family's lists, and let the next one in."""
    f = run.jobs[j]["family"]
    family = run.families[f]
    if _slip_out(run.lists[0, f], family["count"], j):
        _slip_out(run.lists[1, f], family["count"], j)
        family["count"] -= 1
        line_up(run, f)


@inner
def _slip_in(jobs: IntArray, rank: IntArray, size: int, j: int) -> None:
    k = size
    while k > 0 and rank[jobs[k - 1]] > rank[j]:
        jobs[k] = jobs[k - 1]
        k -= 1
    jobs[k] = j


@inner
def _slip_out(jobs: IntArray, size: int, j: int) -> bool:
    k = 0
    while k < size and jobs[k] != j:
        k += 1
    if k == size:
        return False
    for i in range(k, size - 1):
        jobs[i] = jobs[i + 1]
    return True
