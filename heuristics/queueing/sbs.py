"""SBS, the Smart Batch Scheduler (HPS/PBS/SBS): batches of like jobs of one model family.

A job has run time t, n GPUs and `it` iterations. A batch B of two to four jobs of one family is
feasible if it can be placed as a whole, Σ n ≤ G_max and Sim(B) ≥ θ. The batch of the best score
starts:

    Sim(B) = 1/(1 + σ_t² + σ_g²)          variances of run times and of GPU counts
    Eff(B) = Σ it/(Σ n · max t)
    Score(B) = Eff(B) · Sim(B)

Without a batch, the job of the best it/(n·t)/(1 + n/4) starts. In σ_t² times are in hours
(``time_unit_s``), because in seconds only equal run times are alike. A batch of one would always
win. The paper leaves open how batches are found: here a batch is a run of neighbours in two lists
of its family, by (t, n) and (n, t), or any set in a family of few waiting jobs (``every``).
"""

from __future__ import annotations

from optgap.heuristics.queueing.rule import QueueRun, rounded
from optgap.models.compiled import inner
from optgap.models.queueing.arrays import IntArray
from optgap.models.queueing.kernels import fits, place
from optgap.solvers.queueing.online import WAITING, copy_free

BATCH_GPUS, BATCH_JOBS = 8, 4
"""Largest number of GPUs of a batch, G_max, and of its jobs."""
Batch = tuple[int, int, int, int]
"""Array with the jobs of a batch at its end, and -1 before these."""


@inner
def sbs_picks(run: QueueRun) -> int:
    """Write the best batch or the most efficient job for its GPUs to `picks`; return its size."""
    online, picks, gpus = run.online, run.picks, run.online.truth.gpus
    free = 0
    for k in range(len(online.free)):
        free += online.free[k]
    size = _best_batch(run, min(BATCH_GPUS, free))
    for i in range(1, size):  # the largest first, equal ones as in the batch
        for k in range(i, 0, -1):
            if gpus[picks[k]] > gpus[picks[k - 1]]:
                picks[k], picks[k - 1] = picks[k - 1], picks[k]
    if size > 0:
        return size
    best_score = -1.0
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        score = run.efficiency[j] / (1 + gpus[j] / 4)
        if online.fit[online.cls[j]] != 0 and score > best_score:
            picks[0], best_score = j, score
    return 1


@inner
def _best_batch(run: QueueRun, most: int) -> int:
    """Write the best batch to `picks` and return its size; 0 if there is none."""
    cls, fit, gpus, best, size = run.online.cls, run.online.fit, run.online.truth.gpus, -1.0, 0
    for f in range(run.families):
        count, lists = _listed(run, f), run.lists
        for by in range(2 if count > run.rule.every else 0):
            found, recent = 0, (-1, -1, -1, -1)  # jobs of the list that fit, and the last of them
            for k in range(count):
                j = lists[by, k]
                if fit[cls[j]] != 0:
                    recent = (recent[1], recent[2], recent[3], j)
                    found += 1
                    for length in range(2, min(BATCH_JOBS, found) + 1):
                        best, size = _better(run, recent, length, most, best, size)
        for a in range(count if count <= run.rule.every else 0):
            i = lists[0, a]
            if fit[cls[i]] == 0 or gpus[i] >= most:
                continue
            for b in range(a + 1, count):
                j = lists[0, b]
                pair = gpus[i] + gpus[j]
                if fit[cls[j]] == 0 or pair > most:
                    continue
                best, size = _better(run, (-1, -1, i, j), 2, most, best, size)
                for c in range(b + 1, count if pair < most else 0):
                    k = lists[0, c]
                    triple = pair + gpus[k]
                    if fit[cls[k]] == 0 or triple > most:
                        continue
                    best, size = _better(run, (-1, i, j, k), 3, most, best, size)
                    for d in range(c + 1, count if triple < most else 0):
                        m = lists[0, d]
                        if fit[cls[m]] != 0 and triple + gpus[m] <= most:
                            best, size = _better(run, (i, j, k, m), 4, most, best, size)
    return size


@inner
def _listed(run: QueueRun, family: int) -> int:
    """Sort the first waiting jobs of a family into `lists`; return their number."""
    count, online = 0, run.online
    for p in range(online.tally[WAITING]):
        j = online.queue[p]
        if run.family[j] != family or count == run.lists.shape[1]:
            continue
        for by in range(2):
            k, lists, rank = count, run.lists, run.rank
            while k > 0 and rank[by, lists[by, k - 1]] > rank[by, j]:
                lists[by, k] = lists[by, k - 1]
                k -= 1
            lists[by, k] = j
        count += 1
    return count


@inner
def _better(
    run: QueueRun, recent: Batch, length: int, most: int, best: float, size: int
) -> tuple[float, int]:
    """Write the last `length` jobs to `picks` if these are a better batch than the one there.

    A better batch has a higher Eff·Sim, or more jobs, or jobs that arrived earlier.
    """
    n, t, unit = run.online.truth.gpus, run.online.estimate, run.rule.unit
    gpus, work, longest, time = 0, 0.0, 0.0, 0.0
    for i in range(4 - length, 4):
        j = recent[i]
        gpus += n[j]
        work += run.iterations[j]
        longest = max(longest, t[j])
        time += t[j] / unit
    if gpus > most:
        return best, size
    var_time = var_gpus = 0.0
    for i in range(4 - length, 4):
        var_time += (t[recent[i]] / unit - time / length) ** 2
        var_gpus += (n[recent[i]] - gpus / length) ** 2
    similar = 1 / (1 + var_time / length + var_gpus / length)
    score = rounded(work / (gpus * longest) * similar)
    if rounded(similar) < run.rule.similar or score < best or (score == best and length < size):
        return best, size
    if not _together(run, recent, length):
        return best, size
    if score == best and length == size and not _earlier(recent, run.picks, size):
        return best, size
    for i in range(length):
        run.picks[i] = recent[4 - length + i]
    return score, length


@inner
def _together(run: QueueRun, recent: Batch, length: int) -> bool:
    """Tell whether the jobs can be placed one after another, the largest first."""
    gpus, g, left = run.online.truth.gpus, run.online.truth.g, length
    copy_free(run.online, run.free, run.level)
    for n in range(BATCH_GPUS, 0, -1):
        for i in range(4 - length, 4):
            if gpus[recent[i]] == n and fits(run.free, run.level, n, g):
                place(run.free, run.level, n, g, run.spare, 0)
                left -= 1
    return left == 0


@inner
def _earlier(recent: Batch, picks: IntArray, size: int) -> bool:
    """Tell whether a batch's jobs, sorted, come before those of another of the same size."""
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
