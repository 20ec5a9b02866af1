"""Compiled loop: tasks that share GPUs make progress until one of them ends."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.times import ROUNDING, TOLERANCE_S


@compiled
def goal(task: int, period: float, length: IntArray, at: IntArray, duration: FloatArray) -> float:
    """Progress at the end of a task's present sample, or of the task, s."""
    if at[task] < length[task] - 1:
        return float(min(duration[task], (at[task] + 1) * period))
    return float(duration[task])


@compiled
def factor(total: float, exponent: float) -> float:
    """s(U) = max(1, (U/100)^q)."""
    if total <= 100.0:
        return 1.0
    return float((total / 100.0) ** exponent)


@compiled
def retime(
    task: int,
    now: float,
    period: float,
    start: IntArray,
    place: IntArray,
    speed: FloatArray,
    slowdown: FloatArray,
    ready: FloatArray,
    length: IntArray,
    at: IntArray,
    duration: FloatArray,
    progress: FloatArray,
    rate: FloatArray,
    due: FloatArray,
) -> None:
    """Set a task's rate, the slowest of its GPUs', and when its sample or itself ends.

    While one of its GPUs wakes the rate is 0, and what it is due for is that GPU.
    """
    slowest, awake = 1e300, now
    for m in range(start[task], start[task + 1]):
        slowest = min(slowest, speed[m] / slowdown[place[m]])
        awake = max(awake, ready[place[m]])
    if awake > now:
        rate[task], due[task] = 0.0, awake
        return
    rate[task] = slowest
    # of samples that end together some are still to be turned: what counts is where each is
    left = goal(task, period, length, at, duration) - progress[task]
    due[task] = now + max(0.0, left) / slowest


@compiled
def refresh(
    gpu: int,
    now: float,
    period: float,
    exponent: float,
    held: IntArray,
    many: IntArray,
    sample: FloatArray,
    start: IntArray,
    place: IntArray,
    speed: FloatArray,
    slowdown: FloatArray,
    ready: FloatArray,
    length: IntArray,
    at: IntArray,
    duration: FloatArray,
    progress: FloatArray,
    since: FloatArray,
    rate: FloatArray,
    due: FloatArray,
    always: bool,
) -> None:
    """After a change on a GPU: its slowdown, and its residents' progress and rates."""
    total = 0.0
    for m in range(many[gpu]):
        total += sample[held[gpu, m]]
    fresh = factor(total, exponent)
    if fresh == slowdown[gpu] and not always:
        return
    slowdown[gpu] = fresh
    for m in range(many[gpu]):
        task = held[gpu, m]
        progress[task] += (now - since[task]) * rate[task]
        since[task] = now
        retime(
            task,
            now,
            period,
            start,
            place,
            speed,
            slowdown,
            ready,
            length,
            at,
            duration,
            progress,
            rate,
            due,
        )


@compiled
def advance(
    now: float,
    horizon: float,
    period: float,
    exponent: float,
    running: IntArray,
    count: int,
    series: FloatArray,
    offset: IntArray,
    length: IntArray,
    at: IntArray,
    duration: FloatArray,
    held: IntArray,
    many: IntArray,
    sample: FloatArray,
    start: IntArray,
    place: IntArray,
    speed: FloatArray,
    slowdown: FloatArray,
    ready: FloatArray,
    progress: FloatArray,
    since: FloatArray,
    rate: FloatArray,
    due: FloatArray,
) -> tuple[float, int]:
    """The next end of a task before `horizon`: (when, its place in `running`), or (horizon, −1).

    What ends at the horizon does so after what happens there; of tasks that end together the first
    in `running` is told.
    """
    when = now
    while True:
        soon = np.inf
        for k in range(count):
            soon = min(soon, due[running[k]])
        soon += TOLERANCE_S + ROUNDING * soon
        if soon >= horizon:
            return horizon, -1
        first = 0
        while due[running[first]] > soon:
            first += 1
        task = running[first]
        when = max(when, due[task])
        if rate[task] == 0.0:  # what it waited for is awake
            since[task] = when
            retime(
                task, when, period, start, place, speed, slowdown, ready, length, at, duration,
                progress, rate, due,
            )  # fmt: skip
            continue
        # by what it was due for, not by the clock: late in a run short samples round away
        progress[task] = goal(task, period, length, at, duration)
        since[task] = when
        if progress[task] >= duration[task]:
            return when, first
        at[task] += 1
        sample[task] = series[offset[task] + at[task]]
        retime(
            task,
            when,
            period,
            start,
            place,
            speed,
            slowdown,
            ready,
            length,
            at,
            duration,
            progress,
            rate,
            due,
        )
        for m in range(start[task], start[task + 1]):
            refresh(
                place[m], when, period, exponent, held, many, sample, start, place, speed,
                slowdown, ready, length, at, duration, progress, since, rate, due, False,
            )  # fmt: skip


@compiled
def aligned(
    tasks: IntArray,
    count: int,
    series: FloatArray,
    offset: IntArray,
    length: IntArray,
    first: IntArray,
    total: FloatArray,
) -> int:
    """Σ of residents' series from sample `first` of each on, into `total`; returns its length.

    A resident whose series has run out contributes its last sample as long as another lasts.
    """
    longest = 1
    for m in range(count):
        longest = max(longest, length[tasks[m]] - first[m])
    longest = min(longest, len(total))
    for t in range(longest):
        value = 0.0
        for m in range(count):
            k = min(first[m] + t, length[tasks[m]] - 1)
            value += series[offset[tasks[m]] + k]
        total[t] = value
    return longest


@compiled
def correlate(
    gpus: IntArray,
    own: FloatArray,
    held: IntArray,
    many: IntArray,
    series: FloatArray,
    offset: IntArray,
    length: IntArray,
    progress: FloatArray,
    since: FloatArray,
    rate: FloatArray,
    now: float,
    period: float,
    from_start: bool,
    limit: float,
    means: FloatArray,
    rhos: FloatArray,
) -> None:
    """Mean of each GPU's aggregate series, and its Pearson correlation with `own`.

    Aggregates are cut to the shorter; 0 where one is constant or has fewer than two samples, and
    where the aggregate's mean is above `limit`: nobody asks there.
    """
    total = np.zeros(max(1, int(length.max())))
    first = np.zeros(held.shape[1], dtype=np.int64)
    for c in range(len(gpus)):
        g = gpus[c]
        for m in range(many[g]):
            task = held[g, m]
            done = progress[task] + (now - since[task]) * rate[task]
            first[m] = (
                0
                if from_start
                else min(length[task] - 1, int((done + min(TOLERANCE_S, period / 2)) / period))
            )
        longest = aligned(held[g], many[g], series, offset, length, first, total)
        mean = 0.0
        for t in range(longest):
            mean += total[t]
        means[c] = mean / longest
        n = min(longest, len(own))
        rhos[c] = 0.0
        if n < 2 or means[c] > limit:
            continue
        a = b = 0.0
        for t in range(n):
            a += total[t]
            b += own[t]
        a /= n
        b /= n
        ab = aa = bb = 0.0
        for t in range(n):
            x, y = total[t] - a, own[t] - b
            ab += x * y
            aa += x * x
            bb += y * y
        if aa > 1e-12 * n and bb > 1e-12 * n:
            rhos[c] = ab / np.sqrt(aa * bb)
