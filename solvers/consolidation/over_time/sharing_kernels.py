"""Compiled tables over all sets of tasks that may share one GPU for life, and their partitions."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import Case
from optgap.solvers.consolidation.over_time.replay_kernels import (
    Plan,
    Scratch,
    awake_energy,
    replay,
)


@inner
def members(mask: int, tasks: int) -> IntArray:
    """The tasks of a set, ascending."""
    found = np.empty(tasks, dtype=np.int64)
    count = 0
    for ell in range(tasks):
        if mask >> ell & 1:
            found[count] = ell
            count += 1
    return found[:count]


@inner
def energy_alone(case: Case, s: Scratch, plan: Plan, gpu: int, own: IntArray) -> float:
    """The energy of tasks on a GPU that is alone in its server, J; infinite if they do not fit."""
    for ell in own:
        plan.place[ell, 0] = gpu
    if replay(case, s, plan, np.array([gpu]), own, np.zeros((0, 3))) < 0:
        return np.inf
    return float(plan.energy[gpu] + awake_energy(case, plan, case.gpu_server[gpu], own))


@compiled
def shared_energy(
    case: Case, s: Scratch, plan: Plan, gpu: int, costs: FloatArray, first: int, last: int
) -> None:
    """The energy of each set of tasks on a GPU at the clocks of `plan`, J, up to before set `last`.

    Parameters
    ----------
    gpu: any of its kind; where its server draws power of its own, alone in it.
    costs: (2^L,) infinite for what does not fit, filled from set `first` on.
    """
    for mask in range(max(first, 1), min(len(costs), last)):
        costs[mask] = energy_alone(case, s, plan, gpu, members(mask, len(case.submit)))


@inner
def asked_until(case: Case, before: FloatArray, task: int, progress: float) -> float:
    """∫u/100 over a task's progress from 0 to `progress`, s."""
    begin, samples = case.offset[task], case.offset[task + 1] - case.offset[task]
    made = min(max(progress, 0.0), case.duration[task])
    at = min(samples - 1, int(made / case.period))
    return float(before[begin + at] + case.series[begin + at] / 100 * (made - at * case.period))


@inner
def crowded_out(case: Case, own: IntArray, limit: IntArray, high: FloatArray) -> bool:
    """Whether those certainly there leave no room for one that arrives.

    Parameters
    ----------
    limit: (R,) of a GPU. high: (n−1,) the most progress between arrivals, s.
    """
    for j in range(len(own)):
        for r in range(len(limit)):
            made, used = 0.0, case.demand[r, own[j]]
            for i in range(j - 1, -1, -1):
                made += high[i]
                if case.duration[own[i]] > made + 1e-6:
                    used += case.demand[r, own[i]]
            if used > limit[r]:
                return True
    return False


@compiled
def least_energy(
    case: Case,
    work: FloatArray,
    limit: IntArray,
    factor: FloatArray,
    pace: FloatArray,
    watts: FloatArray,
    besides: FloatArray,
) -> FloatArray:
    """(2^L,) bounds on the energy of each set of tasks on one GPU, at any clocks, J.

    Infinite where those that are certainly there do not fit it.

    Parameters
    ----------
    work: (L,) ∫u/100, s. limit: (R,) of a GPU. factor, pace, watts, besides: as in `Envelope`, the
        last its work_j.
    """
    tasks, levels = len(case.submit), len(pace)
    costs = np.zeros(1 << tasks)
    best_ratio = (watts / pace).min()
    room, slope = np.zeros(tasks * (levels + 1)), np.zeros(tasks * (levels + 1))
    asking = case.exponent >= 1.0
    for mask in range(1, len(costs)):
        own = members(mask, tasks)
        if crowded_out(case, own, limit, np.diff(case.submit[own])):
            costs[mask] = np.inf
            continue
        ready = case.submit[own[0]] + case.wake_s
        many, total, made, needed, asked = 0, case.wake_s * watts[0], 0.0, 0.0, 0.0
        for j in range(len(own) - 1, -1, -1):
            begin = max(ready, case.submit[own[j]])
            end = max(ready, case.submit[own[j + 1]]) if j + 1 < len(own) else np.inf
            until = begin  # tasks that came before keep the GPU awake, too
            for i in range(j + 1):
                done = max(ready, case.submit[own[i]]) + case.duration[own[i]]
                until = max(until, min(end, done))
            sure = until - begin
            total += sure * watts[0]
            made += sure * pace[0]
            for q in range(levels - 1):
                room[many] = sure * (pace[q + 1] - pace[q])
                slope[many] = (watts[q + 1] - watts[q]) / (pace[q + 1] - pace[q])
                many += 1
            room[many], slope[many] = end - until, best_ratio
            many += 1
            asked += work[own[j]]
            needed = max(needed, case.duration[own[j]])
            if asking:
                needed = max(needed, asked)
            while made < needed - 1e-12:
                least = -1
                for k in range(many):
                    if room[k] > 0.0 and (least < 0 or slope[k] < slope[least]):
                        least = k
                step = min(room[least], needed - made)
                total += step * slope[least]
                made += step
                room[least] -= step
                if step <= 0.0:
                    break
        costs[mask] = total * factor[own].min() + besides[own].sum()
    return costs


@compiled
def partitions(costs: FloatArray, most: int) -> tuple[FloatArray, IntArray]:
    """The least cost of each set parted into at most 1, 2, … parts, and a part of the best.

    Parameters
    ----------
    costs: (2^L,) of each set as one part. most: how many parts there may be.

    Returns
    -------
    (n+1, 2^L) twice, row k for at most k parts; where `most` is no limit row 1 for any number.
    """
    sets, tasks = len(costs), 0
    while 1 << tasks < sets:
        tasks += 1
    limited = most < tasks
    rows = most if limited else 1
    best, part = np.full((rows + 1, sets), np.inf), np.zeros((rows + 1, sets), dtype=np.int64)
    best[:, 0] = 0.0
    for k in range(1, rows + 1):
        before = best[k - 1] if limited else best[k]
        for mask in range(1, sets):
            low = mask & -mask
            rest = mask ^ low
            sub = rest
            while True:
                value = costs[sub | low] + before[rest ^ sub]
                if value < best[k, mask]:
                    best[k, mask], part[k, mask] = value, sub | low
                if sub == 0:
                    break
                sub = (sub - 1) & rest
    return best, part


@compiled
def merged(one: FloatArray, two: FloatArray) -> tuple[FloatArray, IntArray]:
    """(2^L,) the least of splitting each set between two kinds of GPU, and what the second gets."""
    best, given = one.copy(), np.zeros(len(one), dtype=np.int64)
    for mask in range(1, len(one)):
        sub = mask
        while sub:
            value = one[mask ^ sub] + two[sub]
            if value < best[mask]:
                best[mask], given[mask] = value, sub
            sub = (sub - 1) & mask
    return best, given
