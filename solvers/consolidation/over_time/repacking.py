"""Compiled run of a schedule that packs tasks anew whenever one arrives or ends, on `loop`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.times import ROUNDING, TOLERANCE_S
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import TaskStream
from optgap.solvers.consolidation.over_time.loop import Tables, advance, refresh, tables_of
from optgap.solvers.consolidation.over_time.packing_kernels import (
    Packing,
    Rule,
    empty_packing,
    insert,
    pack_anew,
    servers,
)


class PackedRun(NamedTuple):
    """A schedule that has come so far.

    Parameters
    ----------
    packed, trial: who is where now, and room for another packing. tables: how far each task is.
    active: (L,) tasks that run, then those that wait. counts: how many run, wait and have come.
    clock: (G,) MHz, 0 asleep.
    meter: now, s, power, W, and energy so far, J.
    """

    packed: Packing
    trial: Packing
    tables: Tables
    active: IntArray
    counts: IntArray
    clock: FloatArray
    meter: FloatArray


def fresh_run(case: TaskStream, problem: ConsolidationProblem) -> PackedRun:
    """Before anything has come."""
    gpus = len(case.gpu_kind)
    return PackedRun(
        empty_packing(case), empty_packing(case), tables_of(problem, len(problem)),
        np.empty(len(problem), dtype=np.int64), np.zeros(3, dtype=np.int64), np.zeros(gpus),
        np.zeros(3),
    )  # fmt: skip


@inner
def release(case: TaskStream, rule: Rule, p: Packing, task: int) -> None:
    """Take a task off its GPUs; `place_all` sees to what the others there allow."""
    for m in range(case.width[task]):
        g = p.place[task, m]
        p.many[g] -= 1
        p.load[g] -= rule.mean[task]
        for r in range(case.demand.shape[0]):
            p.used[r, g] -= case.demand[r, task]
        if p.many[g] == 0:
            p.load[g], p.most[g] = 0.0, np.inf
            p.busy[case.gpu_server[g]] -= 1
    p.place[task, :] = -1


@inner
def place_all(case: TaskStream, rule: Rule, run: PackedRun, tasks: IntArray, running: int) -> int:
    """Give those of `tasks` a place that do not run, as the first so many do, where there is room.

    Then pack all anew, if the rule has orders for that. Those that have got a place go before those
    that wait; how many run now.
    """
    p, t, now = run.packed, run.tables, run.meter[0]
    rest = case.duration.copy()
    for task in tasks[:running]:
        done = t.progress[task] + t.rate[task] * (now - t.since[task])
        rest[task] = (case.duration[task] - done) / t.rate[task]
    p.most[:], p.rest[:] = np.inf, 0.0
    for task in tasks[:running]:
        for m in range(case.width[task]):
            g = p.place[task, m]
            p.most[g] = min(p.most[g], rule.most[task])
            p.rest[g] = max(p.rest[g], rest[task])
    waits = False
    for task in tasks[running:]:
        if not insert(case, rule, p, p.many, rest, task):
            waits = True
    pack_anew(case, rule, p, run.trial, rest, tasks, waits)
    for k in range(running, len(tasks)):
        task = tasks[k]
        if p.place[task, 0] >= 0:
            for j in range(k, running, -1):
                tasks[j] = tasks[j - 1]
            tasks[running] = task
            t.since[task] = now
            running += 1
    return running


@inner
def settle(case: TaskStream, rule: Rule, run: PackedRun, tasks: IntArray) -> float:
    """Tell the loop who is where, and at which clock; what all of it draws, W."""
    p, t, now = run.packed, run.tables, run.meter[0]
    least, watts = np.zeros(len(run.clock)), np.zeros(len(run.clock))
    t.many[:] = 0
    for task in tasks:
        for m in range(case.width[task]):
            g = p.place[task, m]
            t.place[t.start[task] + m] = g
            t.held[g, t.many[g]] = task
            t.many[g] += 1
            least[g] = max(least[g], case.floor[case.gpu_kind[g], task])
    for g in range(len(run.clock)):
        fast = rule.fast and t.many[g] > 0
        run.clock[g] = case.f_max[case.gpu_kind[g]] if fast else least[g]
    for task in tasks:
        for m in range(case.width[task]):
            g = p.place[task, m]
            kind, clock = case.gpu_kind[g], run.clock[g]
            t.speed[t.start[task] + m] = (clock / case.f_max[kind]) ** case.beta[kind, task]
            watts[g] = max(watts[g], case.static[kind, task] + case.slope[kind, task] * clock)
    for g in range(len(run.clock)):
        refresh(t, g, now, True)
    return float(watts.sum() + servers(case, p))


@compiled
def run_packed(case: TaskStream, rule: Rule, run: PackedRun, packings: int) -> float:
    """Go on until tasks have been packed so many times; the energy, J, or −1 if more is to come.

    The energy is infinite where a task has no room, or may not wait for it.
    """
    active, meter, t = run.active, run.meter, run.tables
    count, waiting, upcoming = run.counts[0], run.counts[1], run.counts[2]
    while count or waiting or upcoming < len(case.submit):
        if packings == 0:
            run.counts[0], run.counts[1], run.counts[2] = count, waiting, upcoming
            return -1.0
        arrival = case.submit[upcoming] if upcoming < len(case.submit) else np.inf
        # what ends as a task arrives has made room for it
        horizon = arrival + 2 * (TOLERANCE_S + ROUNDING * arrival)
        then, ended = advance(t, active, count, meter[0], horizon)
        if then == np.inf:
            return np.inf  # what waits never fits
        then = max(meter[0], min(then, arrival))
        meter[2] += meter[1] * (then - meter[0])
        meter[0] = then
        if ended >= 0:
            task = active[ended]
            release(case, rule, run.packed, task)
            t.due[task] = np.inf
            count -= 1
            for k in range(ended, count + waiting):
                active[k] = active[k + 1]
        else:
            while upcoming < len(case.submit) and case.submit[upcoming] <= then:
                active[count + waiting] = upcoming
                waiting += 1
                upcoming += 1
        present = active[: count + waiting]
        count = place_all(case, rule, run, present, count)
        waiting = len(present) - count
        if waiting and not case.waiting:
            return np.inf
        meter[1] = settle(case, rule, run, active[:count])
        packings -= 1
    return float(meter[2])
