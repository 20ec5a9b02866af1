"""Compiled run of a schedule that packs tasks anew whenever one arrives or ends.

Written for the search: it shares nothing with the referee.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import TaskStream
from optgap.solvers.consolidation.over_time.packing_kernels import (
    Packing,
    Rule,
    empty_packing,
    insert,
    pack_anew,
    servers,
)

SLEPT_S = 1e-6
"""A GPU that was empty for longer has slept, s."""


class PackedState(NamedTuple):
    """Where every task and GPU is.

    Parameters
    ----------
    progress, rate, since, due, bound: (L,) s, per s, s, and s at which the present sample or the
        task ends: in time and in progress. sample: (L,).
    ready, emptied: (G,) when a GPU is awake, and when it was left. on: (G,) whether it has tasks.
    util, clock, watts: (G,) %, MHz, W.
    """

    progress: FloatArray
    rate: FloatArray
    since: FloatArray
    due: FloatArray
    bound: FloatArray
    sample: IntArray
    ready: FloatArray
    emptied: FloatArray
    on: IntArray
    util: FloatArray
    clock: FloatArray
    watts: FloatArray


class PackedRun(NamedTuple):
    """A schedule that has come so far.

    Parameters
    ----------
    packed, trial: who is where now, and room for another packing. state: of tasks and GPUs.
    active: (L,) tasks that run, then those that wait. counts: how many run, wait and have come.
        meter: now, s, power, W, and energy so far, J.
    """

    packed: Packing
    trial: Packing
    state: PackedState
    active: IntArray
    counts: IntArray
    meter: FloatArray


def fresh_run(case: TaskStream) -> PackedRun:
    """Before anything has come."""
    tasks, gpus = len(case.submit), len(case.gpu_kind)
    several = np.diff(case.offset) > 1
    state = PackedState(
        np.zeros(tasks), np.zeros(tasks), np.zeros(tasks), np.zeros(tasks),
        np.where(several, np.minimum(case.duration, case.period), case.duration),
        np.zeros(tasks, dtype=np.int64), np.zeros(gpus), np.full(gpus, -np.inf),
        np.zeros(gpus, dtype=np.int64), np.zeros(gpus), np.zeros(gpus), np.zeros(gpus),
    )  # fmt: skip
    active = np.empty(tasks, dtype=np.int64)
    return PackedRun(
        empty_packing(case), empty_packing(case), state, active, np.zeros(3, dtype=np.int64),
        np.zeros(3),
    )  # fmt: skip


@inner
def draw(
    case: TaskStream, rule: Rule, p: Packing, s: PackedState, tasks: IntArray, now: float
) -> float:
    """Clocks, utilisation and power of all GPUs from now on; what all of it draws, W."""
    s.util[:] = 0.0
    s.clock[:] = 0.0
    s.watts[:] = 0.0
    for task in tasks:
        for m in range(case.width[task]):
            g = p.place[task, m]
            s.util[g] += case.series[case.offset[task] + s.sample[task]]
            s.clock[g] = max(s.clock[g], case.floor[case.gpu_kind[g], task])
    for g in range(len(s.on)):
        if p.many[g] == 0:
            if s.on[g]:
                s.emptied[g] = now
            s.on[g] = 0
            continue
        if not s.on[g] and now - s.emptied[g] > SLEPT_S:
            s.ready[g] = now + case.wake_s
        s.on[g] = 1
        kind = case.gpu_kind[g]
        wanted = s.clock[g] + rule.level * (case.f_max[kind] - s.clock[g])
        s.clock[g] = min(wanted, case.f_max[kind])
        for k in range(case.clock_count[kind]):
            if case.clocks[kind, k] >= wanted - 1e-6:
                s.clock[g] = case.clocks[kind, k]
                break
    for task in tasks:
        for m in range(case.width[task]):
            g = p.place[task, m]
            kind = case.gpu_kind[g]
            own = case.static[kind, task] + case.slope[kind, task] * s.clock[g]
            s.watts[g] = max(s.watts[g], own)
    return float(s.watts.sum() + servers(case, p))


@inner
def repace(case: TaskStream, p: Packing, s: PackedState, task: int, now: float) -> None:
    """A task's progress so far, and how fast it runs from now on."""
    speed, wakes = np.inf, 0.0
    for m in range(case.width[task]):
        g = p.place[task, m]
        kind = case.gpu_kind[g]
        slow = 1.0 if s.util[g] <= 100.0 else (s.util[g] / 100.0) ** case.exponent
        speed = min(speed, (s.clock[g] / case.f_max[kind]) ** case.beta[kind, task] / slow)
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


@inner
def ended(
    case: TaskStream,
    rule: Rule,
    p: Packing,
    s: PackedState,
    active: IntArray,
    count: int,
    now: float,
) -> int:
    """Take what has ended off its GPUs, and go on to the next samples; how many still run."""
    kept = 0
    for k in range(count):
        task = active[k]
        if s.due[task] <= now and s.rate[task] > 0.0:
            s.progress[task], s.since[task] = s.bound[task], now
            if s.bound[task] >= case.duration[task]:
                for m in range(case.width[task]):  # `place_all` sees to what others allow
                    g = p.place[task, m]
                    p.many[g] -= 1
                    p.load[g] -= rule.mean[task]
                    for r in range(case.demand.shape[0]):
                        p.used[r, g] -= case.demand[r, task]
                    if p.many[g] == 0:
                        p.load[g], p.most[g] = 0.0, np.inf
                        p.busy[case.gpu_server[g]] -= 1
                p.place[task, :] = -1
                continue
            s.sample[task] += 1
            s.bound[task] = case.duration[task]
            if s.sample[task] < case.offset[task + 1] - case.offset[task] - 1:
                s.bound[task] = min(case.duration[task], (s.sample[task] + 1) * case.period)
        active[kept] = task
        kept += 1
    return kept


@inner
def place_all(
    case: TaskStream, rule: Rule, p: Packing, trial: Packing, s: PackedState, tasks: IntArray,
    running: int, now: float,
) -> int:  # fmt: skip
    """Give those of `tasks` a place that do not run, as the first so many do, where there is room.

    Then pack all anew, if the rule has orders for that. Those that have got a place go before those
    that wait; how many run now.
    """
    rest = case.duration.copy()
    for task in tasks[:running]:
        if s.rate[task] > 0.0:
            done = s.progress[task] + s.rate[task] * (now - s.since[task])
            rest[task] = (case.duration[task] - done) / s.rate[task]
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
    pack_anew(case, rule, p, trial, rest, tasks, waits)
    for k in range(running, len(tasks)):
        task = tasks[k]
        if p.place[task, 0] >= 0:
            for j in range(k, running, -1):
                tasks[j] = tasks[j - 1]
            tasks[running] = task
            s.since[task] = now
            running += 1
    return running


@compiled
def run_packed(case: TaskStream, rule: Rule, run: PackedRun, packings: int) -> float:
    """Go on until tasks have been packed so many times; the energy, J, or −1 if more is to come.

    The energy is infinite where a task has no room, or may not wait for it.
    """
    p, s, active, meter = run.packed, run.state, run.active, run.meter
    count, waiting, upcoming = run.counts[0], run.counts[1], run.counts[2]
    while count or waiting or upcoming < len(case.submit):
        if packings == 0:
            run.counts[0], run.counts[1], run.counts[2] = count, waiting, upcoming
            return -1.0
        then = case.submit[upcoming] if upcoming < len(case.submit) else np.inf
        for k in range(count):
            then = min(then, s.due[active[k]])
        if then == np.inf:
            return np.inf  # what waits never fits
        meter[2] += meter[1] * (then - meter[0]) if count else 0.0
        meter[0] = now = then
        left = ended(case, rule, p, s, active, count, now)
        changed = left < count
        for k in range(waiting):
            active[left + k] = active[count + k]
        count = left
        while upcoming < len(case.submit) and case.submit[upcoming] <= now:
            active[count + waiting] = upcoming
            waiting += 1
            upcoming += 1
            changed = True
        present = active[: count + waiting]
        if changed and len(present):
            count = place_all(case, rule, p, run.trial, s, present, count, now)
            packings -= 1
            waiting = len(present) - count
            if waiting and not case.waiting:
                return np.inf
        running = active[:count]
        meter[1] = draw(case, rule, p, s, running, now)
        for task in running:
            repace(case, p, s, task, now)
    return float(meter[2])
