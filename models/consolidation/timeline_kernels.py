"""Compiled loop of the referee: a schedule run GPU by GPU, each looked at when something changes.

Every GPU keeps a chain of its residents and is brought up to date when one of them comes, goes,
wakes or passes to its next sample, or when its clock changes; a heap says which task is next. It
shares nothing with the engine that policies run in.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.times import ROUNDING

NEAR = 1e-9
"""Samples: progress this close to the end of one has reached it."""

ENERGY, GPU_S, SERVER_S = range(3)
Heap = list[tuple[float, int]]


class Given(NamedTuple):
    """What runs where, and on what.

    Parameters
    ----------
    stays, who: (A, widest) GPUs of each assignment, −1 beyond its own, and its task.
    series, offset, duration: samples of all tasks, where each begins, and solo times in s.
    gpu_kind, gpu_server: (G,).
    f_max, beta, static, slope: by kind, the last three by task too.
    server_w: W of an awake server.
    period, exponent: s per sample, and q of the slowdown.
    same_s: s by which equal times may differ: a GPU empty for less has not slept.
    wake_s: latency of a GPU that slept.
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
    wake_s: float


class Held(NamedTuple):
    """The cluster at one moment: by task, by GPU, by server, and the chains of residents.

    Resident m of a task's GPUs is entry task·widest + m of `after` and `before`. All times count
    from `base[0]`, when a task last began to run on an idle cluster: a task that waits for a
    million years lasts as long as any other, and its seconds do not round away.
    """

    base: FloatArray
    stay: IntArray
    progress: FloatArray
    rate: FloatArray
    since: FloatArray
    due: FloatArray
    at: IntArray
    util: FloatArray
    head: IntArray
    clock: FloatArray
    slow: FloatArray
    watts: FloatArray
    settled: FloatArray
    awoke: FloatArray
    emptied: FloatArray
    ready: FloatArray
    busy: IntArray
    woken: FloatArray
    after: IntArray
    before: IntArray


def empty(tasks: int, gpus: int, servers: int, widest: int) -> Held:
    """Nothing runs, everything sleeps."""
    chains = tasks * widest
    return Held(
        base=np.zeros(1),
        stay=np.full(tasks, -1, dtype=np.int64),
        progress=np.zeros(tasks),
        rate=np.zeros(tasks),
        since=np.zeros(tasks),
        due=np.full(tasks, np.inf),
        at=np.zeros(tasks, dtype=np.int64),
        util=np.zeros(tasks),
        head=np.full(gpus, -1, dtype=np.int64),
        clock=np.zeros(gpus),
        slow=np.ones(gpus),
        watts=np.zeros(gpus),
        settled=np.zeros(gpus),
        awoke=np.zeros(gpus),
        emptied=np.full(gpus, -np.inf),
        ready=np.zeros(gpus),
        busy=np.zeros(servers, dtype=np.int64),
        woken=np.zeros(servers),
        after=np.full(chains, -1, dtype=np.int64),
        before=np.full(chains, -1, dtype=np.int64),
    )


@compiled
def rebase(held: Held, now: float) -> None:
    """Count all times from now on; nothing runs."""
    held.base[0] += now
    for g in range(len(held.head)):
        held.settled[g] -= now
        held.emptied[g] -= now
        held.ready[g] -= now


@compiled
def sample_end(given: Given, held: Held, task: int) -> float:
    """Progress at the end of a task's present sample, or of the task, s."""
    if held.at[task] < given.offset[task + 1] - given.offset[task] - 1:
        return float(min(given.duration[task], (held.at[task] + 1) * given.period))
    return float(given.duration[task])


@compiled
def update_rate(given: Given, held: Held, heap: Heap, task: int, now: float) -> None:
    """A task's progress so far, its rate from now on, and when it has to be looked at."""
    held.progress[task] += held.rate[task] * (now - held.since[task])
    held.since[task] = now
    speed, wakes = np.inf, 0.0
    for m in range(given.stays.shape[1]):
        g = given.stays[held.stay[task], m]
        if g < 0:
            break
        kind = given.gpu_kind[g]
        own = (held.clock[g] / given.f_max[kind]) ** given.beta[kind, task] / held.slow[g]
        speed = min(speed, own if held.clock[g] > 0 else 0.0)
        if held.ready[g] > now:
            wakes = max(wakes, held.ready[g])
    due = np.inf
    if wakes > 0:
        speed, due = 0.0, wakes
    elif speed > 0:
        due = now + max(0.0, sample_end(given, held, task) - held.progress[task]) / speed
    held.rate[task] = speed
    if due != held.due[task]:
        held.due[task] = due
        if due < np.inf:
            heapq.heappush(heap, (due, task))


@compiled
def settle(
    given: Given,
    held: Held,
    totals: FloatArray,
    heap: Heap,
    gpu: int,
    now: float,
    always: bool,
) -> None:
    """A GPU's energy so far; what it draws and how fast its residents are from now on.

    Parameters
    ----------
    always: look at the residents even where they slow one another as they did.
    """
    totals[ENERGY] += held.watts[gpu] * (now - held.settled[gpu])
    held.settled[gpu] = now
    widest = given.stays.shape[1]
    total = 0.0
    entry = held.head[gpu]
    while entry >= 0:
        total += held.util[entry // widest]
        entry = held.after[entry]
    slow = 1.0 if total <= 100.0 else (total / 100.0) ** given.exponent
    paced = slow == held.slow[gpu] and not always
    held.slow[gpu] = slow
    kind, most = given.gpu_kind[gpu], 0.0
    entry = held.head[gpu]
    while entry >= 0:
        task = entry // widest
        own = given.static[kind, task] + given.slope[kind, task] * held.clock[gpu]
        most = max(most, own)
        if not paced:
            update_rate(given, held, heap, task, now)
        entry = held.after[entry]
    held.watts[gpu] = most


@compiled
def enter(given: Given, held: Held, totals: FloatArray, heap: Heap, task: int, now: float) -> None:
    """A task starts on the GPUs of its stay; those that slept wake."""
    widest = given.stays.shape[1]
    for m in range(widest):
        g = given.stays[held.stay[task], m]
        if g < 0:
            break
        if held.head[g] < 0:
            if now - held.emptied[g] > given.same_s + ROUNDING * (held.base[0] + now):
                held.ready[g] = now + given.wake_s
            held.settled[g], held.awoke[g] = now, now
            i = given.gpu_server[g]
            if held.busy[i] == 0:
                held.woken[i] = now
            held.busy[i] += 1
        entry = task * widest + m
        held.after[entry], held.before[entry] = held.head[g], -1
        if held.head[g] >= 0:
            held.before[held.head[g]] = entry
        held.head[g] = entry
    next_sample(given, held, totals, heap, task, now)


@compiled
def next_sample(
    given: Given, held: Held, totals: FloatArray, heap: Heap, task: int, now: float
) -> None:
    """A task's sample of the moment, and what it changes on its GPUs."""
    samples = given.offset[task + 1] - given.offset[task]
    index = min(samples - 1, int(held.progress[task] / given.period + NEAR))
    held.at[task] = index
    held.util[task] = given.series[given.offset[task] + index]
    for m in range(given.stays.shape[1]):
        g = given.stays[held.stay[task], m]
        if g < 0:
            break
        settle(given, held, totals, heap, g, now, False)
    update_rate(given, held, heap, task, now)


@compiled
def leave(given: Given, held: Held, totals: FloatArray, heap: Heap, task: int, now: float) -> None:
    """A task leaves its GPUs; those without others sleep."""
    widest = given.stays.shape[1]
    held.progress[task] += held.rate[task] * (now - held.since[task])
    held.since[task], held.rate[task], held.due[task] = now, 0.0, np.inf
    for m in range(widest):
        g = given.stays[held.stay[task], m]
        if g < 0:
            break
        entry = task * widest + m
        above, below = held.before[entry], held.after[entry]
        if above >= 0:
            held.after[above] = below
        else:
            held.head[g] = below
        if below >= 0:
            held.before[below] = above
        settle(given, held, totals, heap, g, now, False)
        if held.head[g] < 0:
            held.emptied[g] = now
            totals[GPU_S] += now - held.awoke[g]
            i = given.gpu_server[g]
            held.busy[i] -= 1
            if held.busy[i] == 0:
                totals[SERVER_S] += now - held.woken[i]
                totals[ENERGY] += given.server_w[i] * (now - held.woken[i])


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

    Parameters
    ----------
    event_time, event_gpu, event_mhz, event_stay: in order, a new clock of a GPU, or where
        `event_stay` is not negative the beginning of that stay.
    """
    end, totals = np.full(len(given.duration), np.inf), np.zeros(3)
    heap = [(np.inf, 0)]
    count, event, now = 0, 0, 0.0
    while True:
        while heap[0][0] != held.due[heap[0][1]] and heap[0][0] < np.inf:
            heapq.heappop(heap)
        due, task = heap[0]
        upcoming = event_time[event] - held.base[0] if event < len(event_time) else np.inf
        if min(due, upcoming) == np.inf:
            return end, totals
        if count == 0:
            rebase(held, upcoming)
            now, upcoming = 0.0, 0.0
        # what ends when a clock changes has ended: its last bit is not run at the new clock
        first = due <= upcoming + given.same_s + ROUNDING * (held.base[0] + upcoming)
        now = max(now, due if first else upcoming)
        if first:
            # by what it was due for, not by the clock: late in a run short samples round away
            done = sample_end(given, held, task) if held.rate[task] > 0 else held.progress[task]
            if done >= given.duration[task]:
                leave(given, held, totals, heap, task, now)
                end[task] = held.base[0] + now
                count -= 1
            else:
                held.progress[task], held.since[task] = done, now
                held.due[task] = np.inf
                next_sample(given, held, totals, heap, task, now)
        else:
            stay = event_stay[event]
            if stay < 0:
                gpu = event_gpu[event]
                held.clock[gpu] = event_mhz[event]
                settle(given, held, totals, heap, gpu, now, True)
            elif end[given.who[stay]] == np.inf:
                task = given.who[stay]
                if held.stay[task] >= 0:
                    leave(given, held, totals, heap, task, now)
                else:
                    count += 1
                held.stay[task] = stay
                held.since[task] = now
                enter(given, held, totals, heap, task, now)
            event += 1
