"""Compiled loop of the referee: from one change to the next, all that runs is looked at.

It shares nothing with the loop that policies and `hindsight` run in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.times import ROUNDING

NEAR = 1e-9
"""Samples: progress this close to the end of one has reached it."""


class Given(NamedTuple):
    """Tasks, their places, and the GPUs, as arrays.

    Parameters
    ----------
    stays, who: (A, widest) GPUs of each assignment, −1 beyond its own, and its task.
    series, offset, duration: samples of all tasks, where each begins, and solo times in s.
    gpu_kind, gpu_server: (G,).
    f_max, beta, static, slope: by kind, the last three by task too.
    server_w: W of an awake server.
    period, exponent: s per sample, and q of the slowdown.
    same_s: s by which equal times may differ.
    """

    stays: IntArray
    who: IntArray
    series: FloatArray
    offset: IntArray
    duration: FloatArray
    gpu_kind: IntArray
    gpu_server: IntArray
    f_max: FloatArray
    beta: FloatArray
    static: FloatArray
    slope: FloatArray
    server_w: FloatArray
    period: float
    exponent: float
    same_s: float


class Held(NamedTuple):
    """The cluster at one moment.

    Parameters
    ----------
    stay, at: (L,) the stay of each task, −1 for none, and its present sample.
    progress, rate, left: (L,) s, s per s, and s until its sample ends. many, clock: (G,) residents
        and MHz.
    busy: (N,) GPUs in use of each server. util: (G,) %, and watts: (G,) W, for now.
    """

    stay: IntArray
    at: IntArray
    progress: FloatArray
    rate: FloatArray
    left: FloatArray
    many: IntArray
    clock: FloatArray
    busy: IntArray
    util: FloatArray
    watts: FloatArray


def empty(tasks: int, gpus: int, servers: int) -> Held:
    """Nothing runs, everything sleeps."""
    none: IntArray = np.full(tasks, -1)
    return Held(
        none, np.zeros_like(none), np.zeros(tasks), np.zeros(tasks), np.zeros(tasks),
        np.zeros(gpus, dtype=np.int64), np.zeros(gpus), np.zeros(servers, dtype=np.int64),
        np.zeros(gpus), np.zeros(gpus),
    )  # fmt: skip


@compiled
def look(given: Given, held: Held, active: IntArray) -> float:
    """Return how fast the tasks that run are from now on; s until one is to be looked at again."""
    widest = given.stays.shape[1]
    held.util[:], held.watts[:] = 0.0, 0.0
    for task in active:
        u = given.series[given.offset[task] + held.at[task]]
        for m in range(widest):
            g = given.stays[held.stay[task], m]
            if g >= 0:
                kind = given.gpu_kind[g]
                held.util[g] += u
                own = given.static[kind, task] + given.slope[kind, task] * held.clock[g]
                held.watts[g] = max(held.watts[g], own)
    soon = np.inf
    for task in active:
        speed = np.inf
        for m in range(widest):
            g = given.stays[held.stay[task], m]
            if g < 0:
                break
            kind, own = given.gpu_kind[g], 1.0
            if held.clock[g] != given.f_max[kind]:
                own = (held.clock[g] / given.f_max[kind]) ** given.beta[kind, task]
            if held.util[g] > 100.0:
                own /= (held.util[g] / 100.0) ** given.exponent
            speed = min(speed, own if held.clock[g] > 0 else 0.0)
        left = np.inf
        if speed > 0:
            left = max(0.0, sample_end(given, held, task) - held.progress[task]) / speed
        held.rate[task], held.left[task] = speed, left
        soon = min(soon, left)
    return float(soon)


@compiled
def sample_end(given: Given, held: Held, task: int) -> float:
    """Progress at the end of a task's present sample, or of the task, s."""
    if held.at[task] < given.offset[task + 1] - given.offset[task] - 1:
        return float(min(given.duration[task], (held.at[task] + 1) * given.period))
    return float(given.duration[task])


@compiled
def sit(given: Given, held: Held, task: int, sign: int) -> None:
    """Put a task onto the GPUs of its stay (sign 1), or take it away."""
    for m in range(given.stays.shape[1]):
        g = given.stays[held.stay[task], m]
        if g < 0:
            break
        held.many[g] += sign
        if held.many[g] == max(sign, 0):
            held.busy[given.gpu_server[g]] += sign
    samples = given.offset[task + 1] - given.offset[task]
    held.at[task] = min(samples - 1, int(held.progress[task] / given.period + NEAR))


@compiled
def run(
    given: Given,
    held: Held,
    event_time: FloatArray,
    event_gpu: IntArray,
    event_mhz: FloatArray,
    event_stay: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """End of each task, and energy, GPU-s and server-s.

    Times count from `base`, when a task last began to run on an idle cluster: a task that waits for
    a million years lasts as long as any other, and its seconds do not round away.

    Parameters
    ----------
    event_time, event_gpu, event_mhz, event_stay: in order, a new clock of a GPU, or where
        `event_stay` is not negative the beginning of that stay.
    """
    end, totals = np.full(len(given.duration), np.inf), np.zeros(3)
    active = np.zeros(len(given.duration), dtype=np.int64)
    count, event, base, now = 0, 0, 0.0, 0.0
    while True:
        upcoming = event_time[event] - base if event < len(event_time) else np.inf
        if count == 0 and upcoming < np.inf:
            base += upcoming
            now, upcoming = 0.0, 0.0
        soon = look(given, held, active[:count])
        if min(soon, upcoming) == np.inf:
            return end, totals
        # what ends when a clock changes has ended: its last bit is not run at the new clock
        slack = given.same_s + ROUNDING * (base + min(upcoming, now + soon))
        first = now + soon <= upcoming + slack
        step = soon if first else max(0.0, upcoming - now)
        watts, gpus, servers = 0.0, 0, 0
        for g in range(len(held.many)):
            watts, gpus = watts + held.watts[g], gpus + (held.many[g] > 0)
        for i in range(len(held.busy)):
            if held.busy[i] > 0:
                watts, servers = watts + given.server_w[i], servers + 1
        totals[0] += watts * step
        totals[1] += gpus * step
        totals[2] += servers * step
        now = now + soon if first else max(now, upcoming)
        kept = 0
        for k in range(count):
            task = active[k]
            held.progress[task] += held.rate[task] * step
            active[kept] = task
            kept += 1
            if held.left[task] > step:
                continue
            # by what it was due for, not by the clock: late in a run short samples round away
            held.progress[task] = sample_end(given, held, task)
            held.at[task] += 1
            if held.progress[task] >= given.duration[task]:
                sit(given, held, task, -1)
                end[task] = base + now
                kept -= 1
        count = kept
        if first:
            continue
        stay = event_stay[event]
        if stay < 0:
            held.clock[event_gpu[event]] = event_mhz[event]
        elif end[given.who[stay]] == np.inf:
            task = given.who[stay]
            if held.stay[task] >= 0:
                sit(given, held, task, -1)
            else:
                active[count] = task
                count += 1
            held.stay[task] = stay
            sit(given, held, task, 1)
        event += 1
