"""Compiled replay of GPUs that share tasks: what they draw, and when their tasks end.

A part of the cluster is closed where no task has GPUs both inside and outside of it; it is replayed
alone. Written for the search: it shares nothing with the referee.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import Case

NEAR_S = 1e-9
"""Progress this close to a boundary has reached it, s."""
SLEPT_S = 1e-6
"""A GPU that was empty for longer has slept, s."""
IMPOSSIBLE = 1e18
"""The energy of what breaks a rule, J."""


class Plan(NamedTuple):
    """Where tasks go, and what comes of it.

    Parameters
    ----------
    place: (L, widest) GPUs of each task, −1 beyond its own.
    level: (L,) the clock from a task's arrival on: 0 the lowest that residents bear, 1 f_max.
    start, end: (L,) s. energy, static: (G,) J of each GPU and (N,) of each server beside them.
    """

    place: IntArray
    level: FloatArray
    start: FloatArray
    end: FloatArray
    energy: FloatArray
    static: FloatArray


class Scratch(NamedTuple):
    """Arrays that a replay works on, by GPU and by task; nothing in them outlives it.

    Parameters
    ----------
    used: (R, G). util, slow, clock, ready, emptied, watts, wish: (G,). count: (G,).
    progress, rate, bound: (L,). sample, active, queue: (L,).
    """

    used: IntArray
    count: IntArray
    util: FloatArray
    slow: FloatArray
    clock: FloatArray
    ready: FloatArray
    emptied: FloatArray
    watts: FloatArray
    wish: FloatArray
    progress: FloatArray
    rate: FloatArray
    bound: FloatArray
    sample: IntArray
    active: IntArray
    queue: IntArray


def scratch_of(case: Case) -> Scratch:
    """Room for replays of any part of a cluster."""
    gpus, tasks = len(case.gpu_kind), len(case.submit)
    f = [np.zeros(gpus) for _ in range(7)]
    return Scratch(
        np.zeros((len(case.demand), gpus), dtype=np.int64), np.zeros(gpus, dtype=np.int64),
        *f, np.zeros(tasks), np.zeros(tasks), np.zeros(tasks),
        np.zeros(tasks, dtype=np.int64), np.zeros(tasks, dtype=np.int64),
        np.zeros(tasks, dtype=np.int64),
    )  # fmt: skip


@compiled
def clock_at(case: Case, kind: int, least: float, level: float) -> float:
    """The clock `level` of the way from the least that residents bear to f_max, MHz."""
    wanted = least + level * (case.f_max[kind] - least)
    for k in range(case.clock_count[kind]):
        if case.clocks[kind, k] >= wanted - 1e-6:
            return float(case.clocks[kind, k])
    return min(wanted, float(case.f_max[kind]))


@compiled
def fits(case: Case, s: Scratch, place: IntArray, task: int) -> bool:
    """Whether all of a task's GPUs have room for it now."""
    for m in range(case.width[task]):
        g = place[task, m]
        for r in range(case.demand.shape[0]):
            if s.used[r, g] + case.demand[r, task] > case.limit[case.gpu_kind[g], r]:
                return False
    return True


@compiled
def begin(case: Case, s: Scratch, plan: Plan, task: int, now: float) -> None:
    """A task starts on its GPUs."""
    plan.start[task] = now
    s.progress[task], s.sample[task] = 0.0, 0
    for m in range(case.width[task]):
        g = plan.place[task, m]
        if s.count[g] == 0 and now - s.emptied[g] > SLEPT_S:
            s.ready[g] = now + case.wake_s
        s.count[g] += 1
        s.wish[g] = plan.level[task]
        for r in range(case.demand.shape[0]):
            s.used[r, g] += case.demand[r, task]
    next_bound(case, s, task)


@compiled
def finish(case: Case, s: Scratch, plan: Plan, task: int, now: float) -> None:
    """A task leaves its GPUs."""
    plan.end[task] = now
    for m in range(case.width[task]):
        g = plan.place[task, m]
        s.count[g] -= 1
        if s.count[g] == 0:
            s.emptied[g] = now
        for r in range(case.demand.shape[0]):
            s.used[r, g] -= case.demand[r, task]


@compiled
def next_bound(case: Case, s: Scratch, task: int) -> None:
    """Progress at which a task's present sample ends, or the task."""
    samples = case.offset[task + 1] - case.offset[task]
    s.bound[task] = case.duration[task]
    if s.sample[task] < samples - 1:
        s.bound[task] = min(case.duration[task], (s.sample[task] + 1) * case.period)


@compiled
def settle(
    case: Case, s: Scratch, plan: Plan, gpus: IntArray, count: int, now: float, changed: bool
) -> None:
    """What every GPU draws and how fast every task runs from now on.

    Parameters
    ----------
    gpus: of the part. count: how many tasks run. changed: whether residents may have changed, and
        with them clocks.
    """
    for g in gpus:
        s.util[g] = 0.0
        s.watts[g] = 0.0
        if changed:
            s.clock[g] = 0.0
    for k in range(count):
        task = s.active[k]
        busy = case.series[case.offset[task] + s.sample[task]]
        for m in range(case.width[task]):
            g = plan.place[task, m]
            s.util[g] += busy
            if changed:
                s.clock[g] = max(s.clock[g], case.floor[case.gpu_kind[g], task])
    for g in gpus:
        if s.count[g] > 0:
            if changed:
                s.clock[g] = clock_at(case, case.gpu_kind[g], s.clock[g], s.wish[g])
            s.slow[g] = 1.0 if s.util[g] <= 100.0 else (s.util[g] / 100.0) ** case.exponent
    for k in range(count):
        task = s.active[k]
        speed = np.inf
        for m in range(case.width[task]):
            g = plan.place[task, m]
            kind = case.gpu_kind[g]
            share = min(1.0, s.util[g] / 100.0) if case.scaled else 1.0
            own = case.static[kind, task] + case.slope[kind, task] * s.clock[g] * share
            s.watts[g] = max(s.watts[g], own)
            rate = (s.clock[g] / case.f_max[kind]) ** case.beta[kind, task] / s.slow[g]
            speed = min(speed, 0.0 if s.ready[g] > now else rate)
        s.rate[task] = speed


@compiled
def replay(
    case: Case, s: Scratch, plan: Plan, gpus: IntArray, tasks: IntArray, log: FloatArray
) -> int:
    """Run a closed part of the cluster; writes start, end and energy into `plan`.

    Parameters
    ----------
    gpus, tasks: of the part; tasks in order of submission.
    log: (n, 3) time, GPU and MHz of each new clock; nothing is written where it is empty.

    Returns
    -------
    How many clocks were logged; −1 where a task has no room, or may not wait for it.
    """
    for g in gpus:
        s.count[g], s.emptied[g], s.ready[g], plan.energy[g] = 0, -np.inf, 0.0, 0.0
        s.watts[g], s.clock[g] = 0.0, 0.0
        for r in range(case.demand.shape[0]):
            s.used[r, g] = 0
    shown = np.zeros(len(case.gpu_kind) if len(log) else 0)
    count, waiting, upcoming, logged, now = 0, 0, 0, 0, 0.0
    while count or waiting or upcoming < len(tasks):
        step = np.inf
        if upcoming < len(tasks):
            step = case.submit[tasks[upcoming]] - now
        arrives = step
        for k in range(count):
            task = s.active[k]
            if s.rate[task] > 0:
                step = min(step, (s.bound[task] - s.progress[task]) / s.rate[task])
        for g in gpus:
            if s.count[g] > 0 and s.ready[g] > now:
                step = min(step, s.ready[g] - now)
        if step == np.inf:
            return -1  # what waits never fits
        step = max(step, 0.0)
        for g in gpus:
            plan.energy[g] += s.watts[g] * step
        later = case.submit[tasks[upcoming]] if arrives <= step else now + step
        for g in gpus:
            if s.ready[g] > now and s.ready[g] - now <= step:
                s.ready[g] = later
        now = later
        ended, kept = False, 0
        for k in range(count):
            task = s.active[k]
            s.progress[task] += s.rate[task] * step
            if s.progress[task] >= s.bound[task] - NEAR_S:
                s.progress[task] = s.bound[task]
                if s.bound[task] >= case.duration[task]:
                    finish(case, s, plan, task, now)
                    ended = True
                    continue
                s.sample[task] += 1
                next_bound(case, s, task)
            s.active[kept] = task
            kept += 1
        count = kept
        changed = ended
        while upcoming < len(tasks) and case.submit[tasks[upcoming]] <= now:
            s.queue[waiting] = tasks[upcoming]
            waiting += 1
            upcoming += 1
            changed = True
        if changed:
            kept = 0
            for k in range(waiting):
                task = s.queue[k]
                if fits(case, s, plan.place, task):
                    begin(case, s, plan, task, now)
                    s.active[count] = task
                    count += 1
                elif not case.waiting:
                    return -1
                else:
                    s.queue[kept] = task
                    kept += 1
            waiting = kept
        settle(case, s, plan, gpus, count, now, changed)
        if len(log) and changed:
            for g in gpus:
                if s.count[g] > 0 and s.clock[g] != shown[g]:
                    log[logged, 0], log[logged, 1], log[logged, 2] = now, g, s.clock[g]
                    shown[g] = s.clock[g]
                    logged += 1
    return logged


@compiled
def awake_energy(case: Case, plan: Plan, server: int, tasks: IntArray) -> float:
    """Static energy of a server: while any of its `tasks` runs, J."""
    watts = case.server_w[server]
    if watts == 0.0 or len(tasks) == 0:
        return 0.0
    order = np.argsort(plan.start[tasks])
    total, until = 0.0, -np.inf
    for k in order:
        task = tasks[k]
        if plan.end[task] > until:
            total += plan.end[task] - max(until, plan.start[task])
            until = plan.end[task]
    return float(watts * total)
