"""Compiled branch and bound for one GPU: the best clocks for tasks that share it for life.

Equal residents make equal progress, θ of it since the first came. A node bounds the progress made
between each arrival and the next; see the page of bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import Case
from optgap.solvers.consolidation.over_time.replay_kernels import IMPOSSIBLE, Plan, Scratch
from optgap.solvers.consolidation.over_time.sharing_kernels import (
    asked_until,
    crowded_out,
    energy_alone,
)


class Grid(NamedTuple):
    """How finely a set's progress is looked at.

    Parameters
    ----------
    parts: of a sample of utilisation, a power of 2: no cell of progress is shorter. coarse: widest
        sides of a box that a cell may be long, where it is longer than that. halvings: of an
        interval, in the search for the most progress that residents leave time for.
    """

    parts: int
    coarse: float
    halvings: int


class Life(NamedTuple):
    """Tasks that share a GPU. n tasks in order of submission, Q vertices of the power curve.

    Parameters
    ----------
    own: (n,) their numbers. gap: (n−1,) s between arrivals in which progress may be made.
    awake: (n,) s of each interval that the GPU is awake for certain, the last without an end.
    waking: s that the first of them waits for the GPU.
    pace, watts: (Q,) the curve. grid: see `Grid`.
    """

    own: IntArray
    gap: FloatArray
    awake: FloatArray
    waking: float
    pace: FloatArray
    watts: FloatArray
    grid: Grid


@inner
def life_of(case: Case, own: IntArray, pace: FloatArray, watts: FloatArray, grid: Grid) -> Life:
    """What is certain of a set at any clocks."""
    count = len(own)
    gap, awake = np.zeros(count - 1), np.zeros(count)
    ready = case.submit[own[0]] + case.wake_s
    until = ready
    for k in range(count):
        begin = max(ready, case.submit[own[k]])
        until = max(until, begin + case.duration[own[k]])
        end = max(ready, case.submit[own[k + 1]]) if k + 1 < count else np.inf
        if k + 1 < count:
            gap[k] = end - begin
        awake[k] = max(0.0, min(until, end) - begin)
    return Life(own, gap, awake, case.wake_s, pace, watts, grid)


@inner
def root(case: Case, life: Life, highest: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """The least and the most progress between arrivals at any clocks."""
    crowd, left, wakes_again = 0.0, 0.0, False
    for k in range(len(life.gap)):
        task = life.own[k]
        wakes_again = wakes_again or (k > 0 and left == 0.0 and case.wake_s > 0.0)
        crowd += highest[task]
        left = max(left, case.duration[task])
        slowest = life.pace[0] / max(1.0, crowd) ** case.exponent
        high[k] = life.gap[k]
        low[k] = 0.0 if wakes_again else max(0.0, min(life.gap[k] * slowest, left))
        left = max(0.0, left - high[k])


@inner
def least_work(
    case: Case,
    before: FloatArray,
    task: int,
    cell: float,
    low: float,
    high: float,
    runs: FloatArray,
    count: int,
    edge: float,
) -> float:
    """The least ∫u/100 over `runs` of a task that begins between `low` and `high`, s.

    Between the beginnings tried the integral is linear: runs begin and end on the grid, or at
    `edge`.
    """
    length = case.duration[task]
    period = case.period
    least = np.inf
    steps = int((high - low) / cell) + 2
    samples = int((high - low) / period) + 2
    for kind in range(5):
        tried = (2, steps, steps, samples, 1)[kind]
        for k in range(tried):
            if kind == 0:
                at = low if k == 0 else high
            elif kind == 1:
                at = (np.floor(low / cell) + k) * cell
            elif kind == 2:
                at = (np.floor((low + length) / cell) + k) * cell - length
            elif kind == 3:
                at = edge - (np.ceil((edge - low) / period) - k) * period
            else:
                at = edge - length
            if at < low or at > high or (kind > 0 and low == high):
                continue
            total = 0.0
            for r in range(count):
                first, last = runs[r, 0] - at, runs[r, 1] - at
                if last > 0.0 and first < length:
                    total += asked_until(case, before, task, last)
                    total -= asked_until(case, before, task, first)
            least = min(least, total)
    return least


@inner
def least_pace(
    case: Case,
    before: FloatArray,
    life: Life,
    low: FloatArray,
    high: FloatArray,
    first: int,
    last: int,
    until: float,
    runs: FloatArray,
) -> float:
    """A bound on ∫s dθ from the arrival of task `first` to θ = `until` after it, s.

    Of the set's tasks the first `last` count. ∫max(1, U) ≥ |A| + ∫ U outside of A for every A: here
    where U < 1 for beginnings halfway between the earliest and the latest.

    Parameters
    ----------
    runs: (m, 2) room for the parts outside of A.
    """
    count = last
    cell, grid = case.period, life.grid
    while cell > max(grid.coarse * (high - low).max(), case.period / grid.parts):
        cell *= 0.5
    begun, latest = np.zeros(count), np.zeros(count)
    for i in range(first - 1, -1, -1):
        begun[i] = begun[i + 1] - high[i] if i + 1 < count else -high[i]
        latest[i] = latest[i + 1] - low[i] if i + 1 < count else -low[i]
    for i in range(first + 1, count):
        begun[i] = begun[i - 1] + low[i - 1]
        latest[i] = latest[i - 1] + high[i - 1]
    alive, over = 0.0, 0.0
    for i in range(count):
        alive = max(alive, begun[i] + case.duration[life.own[i]])
        over = max(over, latest[i] + case.duration[life.own[i]])
    alive, over = min(alive, until), min(over, until)
    if case.exponent < 1.0:
        return alive
    # all of it by length, or all by work, or each cell by what is more at the middle
    cells = min(int(np.ceil(over / cell)), len(runs) - 2)
    best = alive
    for attempt in range(2):
        many, length, open_run = 0, 0.0, False
        if attempt == 0:
            runs[0, 0], runs[0, 1] = 0.0, over
            many = 1
        else:
            for m in range(cells):
                x0, x1 = m * cell, (m + 1) * cell
                short = x0 < alive
                if short:
                    x1 = min(x1, alive)
                    asked = 0.0
                    for i in range(count):
                        mid = 0.5 * (begun[i] + latest[i])
                        task = life.own[i]
                        if x1 > mid and x0 < mid + case.duration[task]:
                            asked += asked_until(case, before, task, x1 - mid)
                            asked -= asked_until(case, before, task, x0 - mid)
                    short = asked < x1 - x0
                if short:
                    length += x1 - x0
                    open_run = False
                elif open_run:
                    runs[many - 1, 1] = x1
                else:
                    runs[many, 0], runs[many, 1] = x0, x1
                    many += 1
                    open_run = True
            if cells > 0 and alive < over:  # what may follow the certain end
                at = max(0.0, alive)
                if not open_run or runs[many - 1, 1] < at:
                    runs[many, 0] = at
                    many += 1
                runs[many - 1, 1] = over
        total, edge = length, until if attempt == 0 and until < np.inf else alive
        for i in range(count):
            total += least_work(
                case, before, life.own[i], cell, begun[i], latest[i], runs, many, edge
            )
        best = max(best, total)
    return best


@inner
def node_bound(
    case: Case,
    before: FloatArray,
    life: Life,
    low: FloatArray,
    high: FloatArray,
    stays: int,
    runs: FloatArray,
) -> float:
    """A bound on the energy of a GPU whose progress between arrivals is in a box, J.

    Parameters
    ----------
    stays: the interval, if any, in which the GPU is awake to its end; −1 where none is known to be.
    """
    count, levels = len(life.own), len(life.pace)
    room, slope = np.zeros((count, levels + 1)), np.zeros(levels + 1)
    for q in range(levels - 1):
        slope[q + 1] = (life.watts[q + 1] - life.watts[q]) / (life.pace[q + 1] - life.pace[q])
    slope[levels] = (life.watts / life.pace).min()
    total = life.waking * life.watts[0]
    made = np.zeros(count)
    for k in range(count - 1, -1, -1):
        awake, left, since = life.awake[k], 0.0, 0.0
        if k + 1 < count:
            for i in range(k, -1, -1):
                left = max(left, case.duration[life.own[i]] - since)
                if i > 0:
                    since += high[i - 1]
            if left >= high[k]:
                awake = life.gap[k]
            elif k == stays:
                awake = life.gap[k] - 1e-6  # the GPU that sleeps no longer need not boot
        total += awake * life.watts[0]
        made[k] = awake * life.pace[0]
        for q in range(levels - 1):
            room[k, q + 1] = awake * (life.pace[q + 1] - life.pace[q])
        room[k, levels] = life.gap[k] - awake if k + 1 < count else np.inf
        if k + 1 < count:
            own = least_pace(case, before, life, low, high, k, k + 1, low[k], runs)
            if own > life.gap[k] + 1e-6:
                return IMPOSSIBLE
            for q in range(1, levels + 1):
                step = min(room[k, q], max(0.0, own - made[k]))
                total += step * slope[q]
                made[k] += step
                room[k, q] -= step
        needed = least_pace(case, before, life, low, high, k, count, np.inf, runs)
        for j in range(k, count):
            needed -= made[j]
        while needed > 1e-9:
            at, of = -1, -1
            for j in range(k, count):
                for q in range(1, levels + 1):
                    if room[j, q] > 0.0 and (at < 0 or slope[q] < slope[of]):
                        at, of = j, q
            step = min(needed, room[at, of])
            total += step * slope[of]
            made[at] += step
            room[at, of] -= step
            needed -= step
    return float(total)


@inner
def make_room(
    case: Case, own: IntArray, limit: IntArray, low: FloatArray, high: FloatArray
) -> None:
    """Raise the least progress where a task must end before another arrives, for its room."""
    for j in range(1, len(own)):
        for r in range(len(limit)):
            used, made = case.demand[r, own[j]], 0.0
            for i in range(j - 1, -1, -1):
                made += high[i]
                if case.duration[own[i]] > made + 1e-6:
                    used += case.demand[r, own[i]]
            made = 0.0
            for i in range(j - 1, -1, -1):
                made += high[i]
                length = case.duration[own[i]] - 1e-6
                if length <= made and used + case.demand[r, own[i]] > limit[r]:
                    for k in range(i, j):
                        low[k] = min(high[k], max(low[k], length - (made - high[k])))


@inner
def slow_down(
    case: Case, before: FloatArray, life: Life, low: FloatArray, high: FloatArray, runs: FloatArray
) -> None:
    """Lower the most progress between arrivals to what residents leave time for at f_max."""
    for k in range(len(life.gap)):
        enough = life.gap[k] + 1e-6
        fits, most = low[k], high[k]
        if least_pace(case, before, life, low, high, k, k + 1, most, runs) <= enough:
            continue
        for _ in range(life.grid.halvings):
            middle = 0.5 * (fits + most)
            if least_pace(case, before, life, low, high, k, k + 1, middle, runs) <= enough:
                fits = middle
            else:
                most = middle
        high[k] = most


@inner
def longest_left(case: Case, own: IntArray, low: FloatArray, k: int) -> float:
    """What is left to do for a task that came by arrival k, s: the most within a box."""
    left, made = case.duration[own[k]], 0.0
    for i in range(k - 1, -1, -1):
        made += low[i]
        left = max(left, case.duration[own[i]] - made)
    return float(left)


@inner
def bound_apart(
    case: Case, before: FloatArray, life: Life, apart: FloatArray, box: FloatArray, runs: FloatArray
) -> float:
    """The most that arrivals by which all before are done prove, J: see `split` for `apart`.

    Where the GPU boots, or it is awake up to the arrival.
    """
    best = 0.0
    for k in range(len(apart)):
        if apart[k] > best and box[0, k] >= longest_left(case, life.own, box[0], k):
            bound = apart[k]
            if case.wake_s > 0.0:
                awake = node_bound(case, before, life, box[0], box[1], k, runs)
                bound = min(bound, awake)
            best = max(best, bound)
    return best


@inner
def bound_within(
    case: Case,
    before: FloatArray,
    life: Life,
    limit: IntArray,
    apart: FloatArray,
    box: FloatArray,
    runs: FloatArray,
) -> float:
    """A bound on the energy within a box, J; IMPOSSIBLE where its tasks do not fit."""
    if crowded_out(case, life.own, limit, box[1]):
        return IMPOSSIBLE
    make_room(case, life.own, limit, box[0], box[1])
    slow_down(case, before, life, box[0], box[1], runs)
    bound = node_bound(case, before, life, box[0], box[1], -1, runs)
    return max(bound, bound_apart(case, before, life, apart, box, runs))


@inner
def where_to_split(
    case: Case, own: IntArray, box: FloatArray, gain: FloatArray
) -> tuple[int, float]:
    """The arrival whose side gains most, by what splits gained per second; and where to split it.

    At what is left of the tasks before, from where on all are done; or in the middle.
    """
    k = int(np.argmax((box[1] - box[0]) * gain))
    left = longest_left(case, own, box[0], k)
    return k, left if box[0, k] < left < box[1, k] else 0.5 * (box[0, k] + box[1, k])


@compiled
def split(
    case: Case,
    before: FloatArray,
    highest: FloatArray,
    own: IntArray,
    limit: IntArray,
    pace: FloatArray,
    watts: FloatArray,
    grid: Grid,
    apart: FloatArray,
    boxes: FloatArray,
    enough: float,
    nodes: int,
) -> tuple[FloatArray, int]:
    """Split boxes whose bound is below `enough`, so many times at most.

    Parameters
    ----------
    before: ∫u/100 up to each sample of all tasks, s. highest: (L,) highest u/100.
    own: (n,) two tasks or more. limit: (R,) what fits a GPU.
    apart: (n−1,) bounds on the energy, J, if all tasks before the second, third, … are done when it
        comes and the GPU boots for it, if it boots at all.
    boxes: (m, 3, n−1) the least and the most progress between arrivals, s, and the bound, J, first
        in its row; none at the beginning.

    Returns
    -------
    (m, 3, n−1) all whose bound is below `enough`, and how many were split.
    """
    life = life_of(case, own, pace, watts, grid)
    width = len(own) - 1
    longest = case.submit[own[width]] - case.submit[own[0]] + case.wake_s
    for task in own:
        longest += case.duration[task]
    runs = np.zeros((grid.parts * int(longest / case.period + 1) + 8, 2))
    used = len(boxes)
    held = np.zeros((used + nodes + 1, 3, width))
    held[:used] = boxes
    for at in range(used):
        bound = bound_apart(case, before, life, apart, held[at], runs)
        held[at, 2, 0] = max(held[at, 2, 0], bound)
    if used == 0:
        root(case, life, highest, held[0, 0], held[0, 1])
        held[0, 2, 0] = bound_within(case, before, life, limit, apart, held[0], runs)
        used = 1
    done = 0
    gain, tried = np.ones(width), np.full(width, 1e-6)  # sides not yet tried come first
    while done < nodes:
        least = held[:used, 2, 0].min()
        if least >= enough:
            break
        level = least + 0.5 * (enough - least)
        count = used
        for at in range(count):
            if held[at, 2, 0] > level or done >= nodes:
                continue
            k, middle = where_to_split(case, own, held[at], gain / tried)
            wide, known = held[at, 1, k] - held[at, 0, k] + 1e-9, held[at, 2, 0]
            held[used] = held[at]
            held[at, 1, k], held[used, 0, k] = middle, middle
            done += 1
            for child in (at, used):
                bound = bound_within(case, before, life, limit, apart, held[child], runs)
                held[child, 2, 0] = max(held[child, 2, 0], bound)
                gain[k] += (min(held[child, 2, 0], enough) - known) / wide
            tried[k] += 1
            used += 1
        kept = 0
        for at in range(used):
            if held[at, 2, 0] < enough:
                held[kept] = held[at]
                kept += 1
        used = kept
        if used == 0:
            break
    return held[:used].copy(), done


@compiled
def best_levels(
    case: Case, s: Scratch, plan: Plan, gpu: int, own: IntArray, finest: float
) -> float:
    """Clocks of little energy for tasks that share a GPU, into `plan.level`; that energy, J.

    One arrival's clock at a time, from all at f_max and from all at the least; infinite where
    neither leaves room.
    """
    best, kept = np.inf, np.ones(len(own))
    for start in (1.0, 0.0):
        level = np.full(len(own), start)
        plan.level[own] = level
        least, step = energy_alone(case, s, plan, gpu, own), 1.0
        while step >= finest and least < np.inf:
            better = False
            for k in range(len(own)):
                for sign in (-1.0, 1.0):
                    tried = min(1.0, max(0.0, level[k] + sign * step))
                    if tried != level[k]:
                        plan.level[own[k]] = tried
                        joules = energy_alone(case, s, plan, gpu, own)
                        if joules < least * (1 - 1e-9):
                            least, level[k], better = joules, tried, True
                    plan.level[own[k]] = level[k]
            if not better:
                step *= 0.5
        if least < best:
            best, kept[:] = least, level
    plan.level[own] = kept
    return float(best)
