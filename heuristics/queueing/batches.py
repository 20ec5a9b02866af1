"""SBS: batches of like jobs of one family, from windows of two sorted lists."""

from __future__ import annotations

from optgap.heuristics.queueing.scores import rounded
from optgap.heuristics.queueing.tables import AHEAD, ARRIVED, NOW, Run
from optgap.models.compiled import inner
from optgap.models.queueing.arrays import IntArray
from optgap.models.queueing.kernels import fits, place


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


@inner
def best_batch(run: Run, free: int) -> int:
    """Leave the best batch in `picks` and return its size; 0 when there is none."""
    most = min(run.rule.batch_gpus, free)
    best, size = -1.0, 0
    for f in range(len(run.families)):
        for by in range(2):
            best, size = _windows(run, run.lists[by, f], run.families[f]["count"], most, best, size)
    return size


@inner
def _windows(
    run: Run, listed: IntArray, count: int, most: int, best: float, size: int
) -> tuple[float, int]:
    """The best of the runs of two to four jobs that fit, in one list of one family."""
    jobs, classes, rule = run.jobs, run.classes, run.rule
    found = 0  # jobs of the list that fit, the last of them in `recent`
    recent = (-1, -1, -1, -1)
    for k in range(count):
        j = listed[k]
        if classes[jobs[j]["cls"]]["fit"] == 0:
            continue
        recent = (recent[1], recent[2], recent[3], j)
        found += 1
        for length in range(2, min(rule.batch_jobs, found) + 1):
            score = _score(run, recent, length, most)
            if score < 0 or score < best or (score == best and length < size):
                continue
            if not _together(run, recent, length):
                continue
            if score == best and length == size and not _earlier(recent, run.picks, size):
                continue
            best, size = score, length
            for i in range(length):
                run.picks[i] = recent[4 - length + i]
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
    for size in range(run.rule.batch_gpus, 0, -1):
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
