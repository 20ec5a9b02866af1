"""Compiled replay of GPUs that share tasks: what they draw, and when their tasks end.

A part of the cluster is closed where no task has GPUs both inside and outside of it; it is replayed
alone. Written for the search: it shares nothing with the referee.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import Case

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

    Residents of a GPU are a chain of entries: GPU m of a task is entry task·widest + m.

    Parameters
    ----------
    used: (R, G). util, slow, clock, ready, emptied, watts, wish, settled: (G,). head, mark: (G,).
    progress, rate, since, due, bound: (L,). sample, active, queue: (L,). touched: (G,).
    after, before: (entries,).
    """

    used: IntArray
    util: FloatArray
    slow: FloatArray
    clock: FloatArray
    ready: FloatArray
    emptied: FloatArray
    watts: FloatArray
    wish: FloatArray
    settled: FloatArray
    head: IntArray
    mark: IntArray
    progress: FloatArray
    rate: FloatArray
    since: FloatArray
    due: FloatArray
    bound: FloatArray
    sample: IntArray
    active: IntArray
    queue: IntArray
    touched: IntArray
    after: IntArray
    before: IntArray


Running = Any
"""A `Scratch`, or the arrays of another run that have its names for samples and their ends."""


def scratch_of(case: Case) -> Scratch:
    """Room for replays of any part of a cluster."""
    gpus, tasks = len(case.gpu_kind), len(case.submit)

    def real(count: int) -> FloatArray:
        return np.zeros(count)

    def whole(count: int) -> IntArray:
        return np.zeros(count, dtype=np.int64)

    entries = tasks * int(case.width.max())
    return Scratch(
        used=np.zeros((len(case.demand), gpus), dtype=np.int64),
        util=real(gpus), slow=real(gpus), clock=real(gpus), ready=real(gpus), emptied=real(gpus),
        watts=real(gpus), wish=real(gpus), settled=real(gpus), head=whole(gpus), mark=whole(gpus),
        progress=real(tasks), rate=real(tasks), since=real(tasks), due=real(tasks),
        bound=real(tasks), sample=whole(tasks), active=whole(tasks), queue=whole(tasks),
        touched=whole(gpus), after=whole(entries), before=whole(entries),
    )  # fmt: skip


@inner
def clock_at(case: Case, kind: int, least: float, level: float) -> float:
    """The clock `level` of the way from the least that residents bear to f_max, MHz."""
    wanted = least + level * (case.f_max[kind] - least)
    for k in range(case.clock_count[kind]):
        if case.clocks[kind, k] >= wanted - 1e-6:
            return float(case.clocks[kind, k])
    return float(min(wanted, case.f_max[kind]))


@inner
def fits(case: Case, s: Scratch, place: IntArray, task: int) -> bool:
    """Whether all of a task's GPUs have room for it now."""
    for m in range(case.width[task]):
        g = place[task, m]
        for r in range(case.demand.shape[0]):
            if s.used[r, g] + case.demand[r, task] > case.limit[case.gpu_kind[g], r]:
                return False
    return True


@inner
def touch(s: Scratch, gpu: int, count: int, residents: bool) -> int:
    """Note that a GPU's residents, or only what they ask for, changed; how many are noted now."""
    if s.mark[gpu] == 0:
        s.touched[count] = gpu
        count += 1
    s.mark[gpu] = max(s.mark[gpu], 2 if residents else 1)
    return count


@inner
def begin(case: Case, s: Scratch, plan: Plan, task: int, now: float, count: int) -> int:
    """A task starts on its GPUs, which are noted as touched."""
    widest = plan.place.shape[1]
    plan.start[task] = now
    s.progress[task], s.sample[task], s.rate[task], s.since[task] = 0.0, 0, 0.0, now
    next_bound(case, s, task)
    for m in range(case.width[task]):
        g, entry = plan.place[task, m], task * widest + m
        if s.head[g] < 0 and now - s.emptied[g] > SLEPT_S:
            s.ready[g] = now + case.wake_s
        s.after[entry], s.before[entry] = s.head[g], -1
        if s.head[g] >= 0:
            s.before[s.head[g]] = entry
        s.head[g] = entry
        s.wish[g] = plan.level[task]
        for r in range(case.demand.shape[0]):
            s.used[r, g] += case.demand[r, task]
        count = touch(s, g, count, True)
    return count


@inner
def finish(case: Case, s: Scratch, plan: Plan, task: int, now: float, count: int) -> int:
    """A task leaves its GPUs, which are noted as touched."""
    widest = plan.place.shape[1]
    plan.end[task] = now
    for m in range(case.width[task]):
        g, entry = plan.place[task, m], task * widest + m
        above, below = s.before[entry], s.after[entry]
        if above >= 0:
            s.after[above] = below
        else:
            s.head[g] = below
        if below >= 0:
            s.before[below] = above
        if s.head[g] < 0:
            s.emptied[g] = now
        for r in range(case.demand.shape[0]):
            s.used[r, g] -= case.demand[r, task]
        count = touch(s, g, count, True)
    return count


@inner
def next_bound(case: Case, s: Running, task: int) -> None:
    """Progress at which a task's present sample ends, or the task."""
    samples = case.offset[task + 1] - case.offset[task]
    s.bound[task] = case.duration[task]
    if s.sample[task] < samples - 1:
        s.bound[task] = min(case.duration[task], (s.sample[task] + 1) * case.period)


@inner
def settle(case: Case, s: Scratch, plan: Plan, gpu: int, now: float) -> None:
    """A GPU's energy so far, and what it draws and how it slows its residents from now on."""
    widest, kind = plan.place.shape[1], case.gpu_kind[gpu]
    plan.energy[gpu] += s.watts[gpu] * (now - s.settled[gpu])
    s.settled[gpu] = now
    total, least = 0.0, 0.0
    entry = s.head[gpu]
    while entry >= 0:
        task = entry // widest
        total += case.series[case.offset[task] + s.sample[task]]
        least = max(least, case.floor[kind, task])
        entry = s.after[entry]
    if s.mark[gpu] == 2 and s.head[gpu] >= 0:
        s.clock[gpu] = clock_at(case, kind, least, s.wish[gpu])
    share = min(1.0, total / 100.0) if case.scaled else 1.0
    s.slow[gpu] = 1.0 if total <= 100.0 else (total / 100.0) ** case.exponent
    most = 0.0
    entry = s.head[gpu]
    while entry >= 0:
        task = entry // widest
        own = case.static[kind, task] + case.slope[kind, task] * s.clock[gpu] * share
        most = max(most, own)
        entry = s.after[entry]
    s.watts[gpu] = most


@inner
def repace(case: Case, s: Scratch, plan: Plan, task: int, now: float) -> None:
    """A task's progress so far, and how fast it runs from now on."""
    speed, wakes = np.inf, 0.0
    for m in range(case.width[task]):
        g = plan.place[task, m]
        kind = case.gpu_kind[g]
        speed = min(speed, (s.clock[g] / case.f_max[kind]) ** case.beta[kind, task] / s.slow[g])
        if s.ready[g] > now:
            wakes = max(wakes, s.ready[g])
    if wakes > 0.0:
        speed = 0.0
    elif speed == s.rate[task] and s.due[task] > now:
        return
    s.progress[task] += s.rate[task] * (now - s.since[task])
    s.since[task], s.rate[task] = now, speed
    s.due[task] = wakes
    if speed > 0.0:
        s.due[task] = now + max(0.0, s.bound[task] - s.progress[task]) / speed


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
        s.head[g], s.emptied[g], s.ready[g], plan.energy[g] = -1, -np.inf, 0.0, 0.0
        s.watts[g], s.clock[g], s.settled[g], s.mark[g] = 0.0, 0.0, 0.0, 0
        for r in range(case.demand.shape[0]):
            s.used[r, g] = 0
    widest = plan.place.shape[1]
    shown = np.zeros(len(case.gpu_kind) if len(log) else 0)
    count, waiting, upcoming, logged, now = 0, 0, 0, 0, 0.0
    while count or waiting or upcoming < len(tasks):
        now = case.submit[tasks[upcoming]] if upcoming < len(tasks) else np.inf
        for k in range(count):
            now = min(now, s.due[s.active[k]])
        if now == np.inf:
            return -1  # what waits never fits
        ended, kept, noted = False, 0, 0
        for k in range(count):
            task = s.active[k]
            if s.due[task] <= now and s.rate[task] > 0.0:
                s.progress[task], s.since[task] = s.bound[task], now
                if s.bound[task] >= case.duration[task]:
                    noted = finish(case, s, plan, task, now, noted)
                    ended = True
                    continue
                s.sample[task] += 1
                next_bound(case, s, task)
            if s.due[task] <= now:
                for m in range(case.width[task]):
                    noted = touch(s, plan.place[task, m], noted, False)
            s.active[kept] = task
            kept += 1
        count = kept
        came = False
        while upcoming < len(tasks) and case.submit[tasks[upcoming]] <= now:
            s.queue[waiting] = tasks[upcoming]
            waiting += 1
            upcoming += 1
            came = True
        if came or ended:
            kept = 0
            for k in range(waiting):
                task = s.queue[k]
                if fits(case, s, plan.place, task):
                    noted = begin(case, s, plan, task, now, noted)
                    s.active[count] = task
                    count += 1
                elif not case.waiting:
                    return -1
                else:
                    s.queue[kept] = task
                    kept += 1
            waiting = kept
        for k in range(noted):
            settle(case, s, plan, s.touched[k], now)
        for k in range(noted):
            g = s.touched[k]
            entry = s.head[g]
            while entry >= 0:
                repace(case, s, plan, entry // widest, now)
                entry = s.after[entry]
            if len(log) and s.head[g] >= 0 and s.clock[g] != shown[g]:
                log[logged, 0], log[logged, 1], log[logged, 2] = now, g, s.clock[g]
                shown[g] = s.clock[g]
                logged += 1
            s.mark[g] = 0
    return logged


@inner
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
