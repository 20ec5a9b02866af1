"""The best plan for a few waiting jobs, by branch and bound on who starts next.

Running jobs only end, and jobs are added in order of their starts, so what is free never shrinks
after the last start: a job starts at the first moment, from that start on, at which it fits. Some
order of the jobs gives an optimum that way: take the starts of an optimum in order; by induction
each job starts no later than there, as those before it have started and ended no later.

Two orders of the same jobs leave the same choice to those that remain. If one has its last start no
later and every job that still runs then ends no later, it can do whatever the other can: the other
is dropped if its sum of starts is no less (and, for a makespan, its last end no earlier).

What remains starts no sooner than each job could alone, and the k-th start is no sooner than there
is room for k of them: those that are longer than the time since the last start still run then, and
hold at least as much as the smallest of them do. Both orders may be taken together, k by k.
"""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing.arrays import IntArray

FAR = 2**62
KEPT = 16
"""Partial plans remembered for each set of jobs."""


@inner
def _passed(ends: IntArray, time: int) -> int:
    """The last end that is not after `time`."""
    low, high = 0, len(ends)
    while high - low > 1:
        middle = (low + high) // 2
        if ends[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@inner
def _room(
    t: int,
    at: int,
    jobs: IntArray,
    profile: IntArray,
    ends: IntArray,
    start: IntArray,
    placed: IntArray,
    depth: int,
) -> tuple[int, int, int]:
    """GPUs and nodes that running and placed jobs leave free at t, and when that changes next.

    `at` is the last end that is not after t.
    """
    free, nodes = profile[at]
    later = ends[at + 1] if at + 1 < len(ends) else FAR
    for i in range(depth):
        other = placed[i]
        end = start[other] + jobs[other, 0]
        if end > t:
            free -= jobs[other, 1]
            nodes -= jobs[other, 2]
            later = min(later, end)
    return free, nodes, later


@inner
def _earliest(
    k: int,
    since: int,
    jobs: IntArray,
    profile: IntArray,
    ends: IntArray,
    start: IntArray,
    placed: IntArray,
    depth: int,
    at: int,
) -> int:
    """When job k fits first, from `since` on, beside the running and the placed jobs.

    `at` is an end that is not after `since`.
    """
    gpus, whole, ready = jobs[k, 1], jobs[k, 2], jobs[k, 3]
    time = max(since, ready)
    while True:
        while at + 1 < len(ends) and ends[at + 1] <= time:
            at += 1
        free, nodes, later = _room(time, at, jobs, profile, ends, start, placed, depth)
        if gpus <= free and whole <= nodes:
            return int(time)
        if later == FAR:
            return FAR
        time = later


@inner
def _children(
    since: int,
    used: IntArray,
    jobs: IntArray,
    profile: IntArray,
    ends: IntArray,
    start: IntArray,
    placed: IntArray,
    depth: int,
    first: IntArray,
    order: IntArray,
) -> int:
    """Who may start next, the earliest first; returns how many. Writes earliest starts to `first`.

    Left out are jobs that start no sooner than another could have ended: that one might as well
    run before. Of jobs that are alike the first one comes first.
    """
    count, soonest, before = len(jobs), FAR, _passed(ends, since)
    for k in range(count):
        if used[k] == 0:
            first[k] = _earliest(k, since, jobs, profile, ends, start, placed, depth, before)
            soonest = min(soonest, first[k] + jobs[k, 0])
    size = 0
    for k in range(count):
        if used[k] != 0 or first[k] >= soonest:
            continue
        twin = False
        for i in range(k):
            twin |= used[i] == 0 and (jobs[i] == jobs[k]).all()
        if twin:
            continue
        at = size
        while at > 0 and (first[k], jobs[k, 0]) < (
            first[order[at - 1]],
            jobs[order[at - 1], 0],
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = k
        size += 1
    return size


@inner
def _fewest(t: int, since: int, k: int, used: IntArray, jobs: IntArray, by_gpus: IntArray) -> int:
    """GPUs that the k first of the remaining jobs hold at least at t, all started after `since`."""
    short = 0
    for i in range(len(jobs)):
        if used[i] == 0 and since + jobs[i, 0] <= t:
            short += 1
    wanted, total = k - short, 0
    for at in range(len(jobs)):
        if wanted <= 0:
            break
        i = by_gpus[at]
        if used[i] == 0 and since + jobs[i, 0] > t:
            total += jobs[i, 1]
            wanted -= 1
    return total


@inner
def _least(
    since: int,
    used: IntArray,
    jobs: IntArray,
    profile: IntArray,
    ends: IntArray,
    start: IntArray,
    placed: IntArray,
    depth: int,
    first: IntArray,
    by_gpus: IntArray,
    spare: IntArray,
    enough: int,
) -> int:
    """What the starts of the remaining jobs add up to at least, or `enough` once it is that.

    The k-th of them starts no sooner than k of them could each alone, nor before there is room for
    the k smallest together, less those that may have ended by then.
    """
    count, size = len(jobs), 0
    for i in range(count):  # earliest starts, ascending
        if used[i] == 0:
            at = size
            while at > 0 and spare[at - 1] > first[i]:
                spare[at] = spare[at - 1]
                at -= 1
            spare[at] = first[i]
            size += 1
    total, t, at = 0, since, _passed(ends, since)
    for k in range(size):
        t = max(t, spare[k])
        while True:
            while at + 1 < len(ends) and ends[at + 1] <= t:
                at += 1
            free, _, later = _room(t, at, jobs, profile, ends, start, placed, depth)
            if _fewest(t, since, k + 1, used, jobs, by_gpus) <= free:
                break
            for i in range(count):
                if used[i] == 0 and since + jobs[i, 0] > t:
                    later = min(later, since + jobs[i, 0])
            if later == FAR:
                break
            t = later
        total += t
        if total >= enough:
            return total
    return total


@inner
def _known(
    mask: int,
    since: int,
    spent: int,
    jobs: IntArray,
    start: IntArray,
    used: IntArray,
    memory: IntArray,
    kept: IntArray,
) -> bool:
    """Whether a plan of the same jobs that was seen before is as good; else this is remembered."""
    count = len(jobs)
    last = 0
    for i in range(count):
        if used[i] != 0:
            last = max(last, start[i] + jobs[i, 0])
    for at in range(min(kept[mask], KEPT)):
        seen = memory[mask, at]
        good = seen[count] <= since and seen[count + 1] <= spent and seen[count + 2] <= last
        for i in range(count):
            if good and used[i] != 0 and seen[i] > max(since, start[i] + jobs[i, 0]):
                good = False
        if good:
            return True
    row = memory[mask, kept[mask] % KEPT]
    kept[mask] += 1
    for i in range(count):
        row[i] = start[i] + jobs[i, 0]
    row[count], row[count + 1], row[count + 2] = since, spent, last
    return False


@compiled
def best_plan(
    jobs: IntArray, profile: IntArray, ends: IntArray, makespan: bool, most: int
) -> tuple[IntArray, int, int]:
    """Starts of the best plan found, its cost, and how many partial plans were looked at.

    Parameters
    ----------
    jobs: per job its length, GPUs, whole nodes and the time it cannot start before, shape (J, 4).
    profile: GPUs and nodes free from each of `ends` on, shape (E, 2); never less than before.
    ends: ascending, the first 0, shape (E,).
    makespan: minimise (J + 1)·max end + Σ start instead of Σ start.
    most: partial plans to look at; the plan is proven best if fewer were looked at.
    """
    count = len(jobs)
    used = np.zeros(count, dtype=np.int64)
    placed = np.zeros(count, dtype=np.int64)
    start = np.zeros(count, dtype=np.int64)
    best = np.zeros(count, dtype=np.int64)
    first = np.zeros((count + 1, count), dtype=np.int64)
    order = np.zeros((count + 1, count), dtype=np.int64)
    size = np.zeros(count + 1, dtype=np.int64)
    following = np.zeros(count + 1, dtype=np.int64)
    memory = np.empty((2**count, KEPT, count + 3), dtype=np.int64)
    kept = np.zeros(2**count, dtype=np.int64)
    by_gpus, spare = np.argsort(jobs[:, 1]), np.zeros(count, dtype=np.int64)
    mask, spent = 0, 0
    cost, looked, depth = FAR, 0, 0
    size[0] = _children(
        0, used, jobs, profile, ends, start, placed, 0, first[0], order[0]
    )  # fmt: skip
    while depth >= 0 and looked < most:
        if following[depth] == size[depth]:  # all done here: back
            following[depth] = 0
            depth -= 1
            if depth >= 0:
                used[placed[depth]] = 0
                mask -= 1 << placed[depth]
                spent -= start[placed[depth]]
            continue
        k = order[depth, following[depth]]
        following[depth] += 1
        looked += 1
        used[k], placed[depth], start[k] = 1, k, first[depth, k]
        mask += 1 << k
        spent += start[k]
        depth += 1
        if depth < count and _known(mask, start[k], spent, jobs, start, used, memory, kept):
            depth -= 1
            used[k] = 0
            mask -= 1 << k
            spent -= start[k]
            continue
        following[depth] = 0
        size[depth] = _children(
            start[k], used, jobs, profile, ends, start, placed, depth, first[depth], order[depth]
        )
        least, last = 0, 0
        for i in range(count):
            time = start[i] if used[i] != 0 else first[depth, i]
            least += time
            last = max(last, time + jobs[i, 0])
        if depth < count and least < cost and not makespan:
            least = spent + _least(
                start[k],
                used,
                jobs,
                profile,
                ends,
                start,
                placed,
                depth,
                first[depth],
                by_gpus,
                spare,
                cost - spent,
            )
        if makespan:
            least += (count + 1) * last
        if depth < count and least < cost:
            continue
        if least < cost:
            cost = least
            best[:] = start
        depth -= 1
        used[k] = 0
        mask -= 1 << k
        spent -= start[k]
    return best, cost, looked
