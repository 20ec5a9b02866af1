"""The compiled event loop: tasks that share GPUs make progress until one of them ends.

Policies and `hindsight` run on it; it shares nothing with the referee.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, floats
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.times import ROUNDING, TOLERANCE_S


class Tables(NamedTuple):
    """Running tasks, places and progress. Entries are the GPUs of tasks, one after another.

    Parameters
    ----------
    held, many: (G, most) and (G,) the residents of each GPU. slowdown: (G,) by their contention.
    start, place, speed: (L+1,) the first entry of each task; (entries,) its GPU and what the clock
        there lets it do.
    series, offset, length: samples of all tasks, where each begins, and how many it has.
    at, sample: (L,) the present sample of each task, and its utilisation, %.
    duration, progress, rate: (L,) s, s and s per s. since, due: (L,) when progress was counted
        last, and when the sample or the task ends, s.
    period, exponent: s per sample, and q of the slowdown.
    """

    held: IntArray
    many: IntArray
    slowdown: FloatArray
    start: IntArray
    place: IntArray
    speed: FloatArray
    series: FloatArray
    offset: IntArray
    length: IntArray
    at: IntArray
    sample: FloatArray
    duration: FloatArray
    progress: FloatArray
    rate: FloatArray
    since: FloatArray
    due: FloatArray
    period: float
    exponent: float


def tables_of(problem: ConsolidationProblem, most: int) -> Tables:
    """Nothing runs yet, and there is room for `most` residents on a GPU."""
    gpus, tasks = len(problem.places), len(problem)
    start = np.concatenate([[0], np.cumsum(problem.width)]).astype(np.int64)
    series = floats(np.concatenate([task.util_percent for task in problem.tasks]))
    length = np.array([task.util_percent.size for task in problem.tasks], dtype=np.int64)
    offset = np.concatenate([[0], np.cumsum(length)[:-1]]).astype(np.int64)
    return Tables(
        held=np.zeros((gpus, most), dtype=np.int64),
        many=np.zeros(gpus, dtype=np.int64),
        slowdown=np.ones(gpus),
        start=start,
        place=np.zeros(int(start[-1]), dtype=np.int64),
        speed=np.ones(int(start[-1])),
        series=series,
        offset=offset,
        length=length,
        at=np.zeros(tasks, dtype=np.int64),
        sample=series[offset].copy(),
        duration=floats([task.duration_s for task in problem.tasks]),
        progress=np.zeros(tasks),
        rate=np.ones(tasks),
        since=np.zeros(tasks),
        due=np.full(tasks, np.inf),
        period=float(problem.period_s),
        exponent=float(problem.rules.contention),
    )


@compiled
def sample_end(tables: Tables, task: int) -> float:
    """Progress at the end of a task's present sample, or of the task, s."""
    if tables.at[task] < tables.length[task] - 1:
        return float(min(tables.duration[task], (tables.at[task] + 1) * tables.period))
    return float(tables.duration[task])


@compiled
def update_rate(tables: Tables, task: int, now: float) -> None:
    """Set a task's rate, the slowest of its GPUs', and when its sample or itself ends."""
    slowest = 1e300
    for m in range(tables.start[task], tables.start[task + 1]):
        slowest = min(slowest, tables.speed[m] / tables.slowdown[tables.place[m]])
    tables.rate[task] = slowest
    # of samples that end together some are still to begin: what counts is where each is
    left = sample_end(tables, task) - tables.progress[task]
    tables.due[task] = now + max(0.0, left) / slowest


@compiled
def refresh(tables: Tables, gpu: int, now: float, always: bool) -> None:
    """After a change on a GPU: its slowdown max(1, (U/100)^q), its residents' progress and rates.

    Parameters
    ----------
    always: look at the residents even where they slow one another as they did.
    """
    total = 0.0
    for m in range(tables.many[gpu]):
        total += tables.sample[tables.held[gpu, m]]
    fresh = 1.0 if total <= 100.0 else (total / 100.0) ** tables.exponent
    if fresh == tables.slowdown[gpu] and not always:
        return
    tables.slowdown[gpu] = fresh
    for m in range(tables.many[gpu]):
        task = tables.held[gpu, m]
        tables.progress[task] += (now - tables.since[task]) * tables.rate[task]
        tables.since[task] = now
        update_rate(tables, task, now)


@compiled
def advance(
    tables: Tables, running: IntArray, count: int, now: float, horizon: float
) -> tuple[float, int]:
    """Return the next end before `horizon`: (time, place in `running`), or (horizon, −1).

    What ends at the horizon does so after what happens there; of tasks that end together the first
    in `running` is told.
    """
    when = now
    while True:
        soon = np.inf
        for k in range(count):
            soon = min(soon, tables.due[running[k]])
        soon += TOLERANCE_S + ROUNDING * soon
        if soon >= horizon:
            return horizon, -1
        first = 0
        while tables.due[running[first]] > soon:
            first += 1
        task = running[first]
        when = max(when, tables.due[task])
        # by what it was due for, not by the clock: late in a run short samples round away
        tables.progress[task] = sample_end(tables, task)
        tables.since[task] = when
        if tables.progress[task] >= tables.duration[task]:
            return when, first
        tables.at[task] += 1
        tables.sample[task] = tables.series[tables.offset[task] + tables.at[task]]
        update_rate(tables, task, when)
        for m in range(tables.start[task], tables.start[task + 1]):
            refresh(tables, tables.place[m], when, False)
