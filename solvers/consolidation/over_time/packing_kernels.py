"""Compiled packing of the tasks that are present at one time: each GPU as full as may be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import TaskStream

OPENING = 10.0
"""Cost of opening a GPU beside its power, more than any room left on another GPU."""


TOO_SHORT = 0.1
"""Cost of a second by which a task ends before its GPU, relative to one by which it ends later."""


class Packing(NamedTuple):
    """Tasks on each GPU.

    Parameters
    ----------
    place: (L, widest) GPUs of each task, −1 where it has none.
    used: (R, G) of each limit. load, most: (G,) summed mean utilisation, %, and the least of what
        its tasks allow there. rest: (G,) s until its last task ends, about. many: (G,) tasks.
    busy: (N,) GPUs with tasks in each server.
    """

    place: IntArray
    used: IntArray
    load: FloatArray
    most: FloatArray
    rest: FloatArray
    many: IntArray
    busy: IntArray


class Rule(NamedTuple):
    """Rule by which tasks are packed.

    Parameters
    ----------
    mean: (L,) utilisation, %. most: (L,) summed mean utilisation that a task's GPUs may have.
    orders: (K, L) all tasks, in each order in which they are packed anew.
    fast: whether GPUs run at f_max; else as slowly as their residents bear.
    longer: what a second counts by which a GPU is kept awake longer, in shares of a GPU left free.
    """

    mean: FloatArray
    most: FloatArray
    orders: IntArray
    fast: bool
    longer: float


def empty_packing(case: TaskStream) -> Packing:
    """Nobody anywhere."""
    gpus = len(case.gpu_kind)
    return Packing(
        np.full((len(case.submit), case.width.max()), -1),
        np.zeros((len(case.demand), gpus), dtype=np.int64),
        np.zeros(gpus),
        np.full(gpus, np.inf),
        np.zeros(gpus),
        np.zeros(gpus, dtype=np.int64),
        np.zeros(len(case.server_w), dtype=np.int64),
    )


@inner
def insert(
    case: TaskStream, rule: Rule, p: Packing, awake: IntArray, rest: FloatArray, task: int
) -> bool:
    """Put a task where it counts least; False where it does not fit.

    A GPU counts the share that would be left of it, or what it takes to open; ∞ without room.

    Parameters
    ----------
    awake: (G,) positive where a GPU is awake by now: of empty ones these are taken first.
    rest: (L,) s until each task ends, about.
    """
    width, gpus = case.width[task], len(case.gpu_kind)
    together, rows = case.one_server and width > 1, case.demand.shape[0]
    values, chosen = np.empty(gpus), np.empty(width, dtype=np.int64)
    least = np.inf
    for i in range(len(case.server_w) if together else 1):
        begin = case.server_start[i] if together else 0
        end = case.server_start[i + 1] if together else gpus
        if end - begin < width:
            continue
        for g in range(begin, end):
            kind = case.gpu_kind[g]
            values[g] = 0.0
            if p.many[g] == 0:
                values[g] = OPENING + case.static[kind, task]
                values[g] += case.slope[kind, task] * case.f_max[kind]
                if p.busy[case.gpu_server[g]] == 0:
                    values[g] += case.server_w[case.gpu_server[g]]
                if awake[g] == 0:
                    values[g] += 1.0
            elif p.load[g] + rule.mean[task] > min(p.most[g], rule.most[task]):
                values[g] = np.inf
                continue
            elif rule.longer > 0.0:
                more = rest[task] * max(1.0, (p.load[g] + rule.mean[task]) / 100.0) - p.rest[g]
                values[g] += rule.longer * max(more, -TOO_SHORT * more)
            for r in range(rows):
                room = case.limit[kind, r] - p.used[r, g] - case.demand[r, task]
                if room < 0:
                    values[g] = np.inf
                    break
                values[g] += room / (rows * case.limit[kind, r])
        total = 0.0
        for m in range(width):
            g = begin + int(np.argmin(values[begin:end]))
            total += values[g]
            values[g] = np.inf
            chosen[m] = g
        if total < least:
            least = total
            for m in range(width):
                p.place[task, m] = chosen[m]
    if least == np.inf:
        return False
    for m in range(width):
        g = p.place[task, m]
        if p.many[g] == 0:
            p.busy[case.gpu_server[g]] += 1
        p.many[g] += 1
        p.load[g] += rule.mean[task]
        p.most[g] = min(p.most[g], rule.most[task])
        p.rest[g] = max(p.rest[g], rest[task])
        for r in range(case.demand.shape[0]):
            p.used[r, g] += case.demand[r, task]
    return True


@inner
def power(case: TaskStream, p: Packing, tasks: IntArray) -> float:
    """Return what the GPUs and servers of a packing draw at f_max, W."""
    watts = np.zeros(len(case.gpu_kind))
    for task in tasks:
        for m in range(case.width[task]):
            g = p.place[task, m]
            if g >= 0:
                kind = case.gpu_kind[g]
                own = case.static[kind, task] + case.slope[kind, task] * case.f_max[kind]
                watts[g] = max(watts[g], own)
    return float(watts.sum() + servers(case, p))


@inner
def servers(case: TaskStream, p: Packing) -> float:
    """Return what the servers with tasks draw besides, W."""
    watts = 0.0
    for i in range(len(p.busy)):
        if p.busy[i] > 0:
            watts += case.server_w[i]
    return watts


@inner
def pack_anew(
    case: TaskStream, rule: Rule, p: Packing, trial: Packing, rest: FloatArray, tasks: IntArray,
    missing: bool,
) -> bool:  # fmt: skip
    """Pack all tasks in each order; keep the packing of least power if it is less than now.

    Parameters
    ----------
    missing: some task has no GPU yet: any packing of all is better. Returns whether one was taken.
    """
    least = np.inf if missing else power(case, p, tasks) * (1 - 1e-9)
    awake, there = p.many.copy(), np.zeros(len(case.submit), dtype=np.bool_)
    for task in tasks:
        there[task] = True
    better = False
    for k in range(len(rule.orders)):
        trial.place[:], trial.used[:], trial.many[:], trial.busy[:] = -1, 0, 0, 0
        trial.load[:], trial.most[:], trial.rest[:] = 0.0, np.inf, 0.0
        whole = True
        for task in rule.orders[k]:
            if there[task] and not insert(case, rule, trial, awake, rest, task):
                whole = False
                break
        if whole:
            watts = power(case, trial, tasks)
            if watts < least:
                least, better = watts, True
                for task in tasks:  # loops compile ten times faster than copies of arrays
                    for m in range(p.place.shape[1]):
                        p.place[task, m] = trial.place[task, m]
                for g in range(len(p.many)):
                    p.load[g], p.most[g], p.rest[g] = trial.load[g], trial.most[g], trial.rest[g]
                    p.many[g] = trial.many[g]
                    for r in range(p.used.shape[0]):
                        p.used[r, g] = trial.used[r, g]
                for i in range(len(p.busy)):
                    p.busy[i] = trial.busy[i]
    return better
