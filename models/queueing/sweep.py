"""Queue length and fragmentation of a schedule over time, in one sweep."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.queueing.arrays import FloatArray
from optgap.models.times import freed_s

if TYPE_CHECKING:
    from optgap.models.queueing.problem import QueueingProblem
    from optgap.models.queueing.solution import QueueingSolution

END, ARRIVE, LEAVE, START = range(4)


def over_time(
    problem: QueueingProblem, solution: QueueingSolution, left: FloatArray
) -> dict[str, float | int]:
    """Time averages from the first arrival to the last end.

    Fragmentation is averaged over the time in which jobs wait: ``blocked``, the share of it in
    which the longest-waiting job asks for no more GPUs than are free and yet fits nowhere; and
    ``partial``, the share of the free GPUs that are on partly used nodes.
    """
    k, arrival = solution.started, problem.jobs.arrival_s
    leavers = np.flatnonzero(np.isfinite(left))
    parts = (
        (END, k, freed_s(solution.start_s[k], solution.end_s[k])),
        (ARRIVE, np.arange(len(problem)), arrival),
        (LEAVE, leavers, left[leavers]),
        (START, k, solution.start_s[k]),
    )
    time = np.concatenate([times for *_, times in parts])
    kind = np.concatenate([np.full(len(who), what) for what, who, _ in parts])
    job = np.concatenate([who for _, who, _ in parts])
    order = np.lexsort((kind, time))
    events = zip(time[order].tolist(), kind[order].tolist(), job[order].tolist(), strict=True)
    waiting, most, queued, blocked, partial = _sweep(problem, solution, events)
    end = float(solution.end_s[k].max())
    return {
        "queue_mean": queued / max(end - float(arrival[0]), math.ulp(1.0)),
        "queue_max": most,
        "fragmentation_blocked": blocked / waiting if waiting else 0.0,
        "fragmentation_partial": partial / waiting if waiting else 0.0,
    }


def _sweep(
    problem: QueueingProblem,
    solution: QueueingSolution,
    events: Iterable[tuple[float, int, int]],
) -> tuple[float, int, float, float, float]:
    """Time with jobs waiting, longest queue, and the integrals of queue, blocked and partial."""
    (nodes, g), gpus = problem.shape, problem.jobs.gpus.tolist()
    at, held = solution.held_at.tolist(), solution.held_gpus.tolist()
    node = solution.held_node.tolist()
    free, level, total = [g] * nodes, Counter({g: nodes}), nodes * g
    here = [False] * len(gpus)
    head, size, most, before = 0, 0, 0, 0.0
    waiting = queued = blocked = partial = 0.0

    def room(n: int) -> bool:
        """Tell whether n GPUs are free as the placement rule wants them."""
        whole, rest = level[g] - n // g, n % g
        some = rest == 0 or whole > 0
        return whole >= 0 and (some or any(rest <= f < g and m > 0 for f, m in level.items()))

    for now, what, j in events:
        span, before = now - before, now
        if span > 0 and size > 0:
            while not here[head]:
                head += 1
            waiting += span
            queued += size * span
            most = max(most, size)
            if gpus[head] <= total and not room(gpus[head]):
                blocked += span
            if total > 0:
                partial += span * (total - level[g] * g) / total
        if what in (ARRIVE, LEAVE, START):
            here[j] = what == ARRIVE
            size += 1 if here[j] else -1
            head = min(head, j) if here[j] else head
        if what in (END, START):
            sign = 1 if what == END else -1
            pairs = [(0, gpus[j])]
            if problem.placement == "node":
                pairs = [(node[h], held[h]) for h in range(at[j], at[j + 1])]
            for k, n in pairs:
                level[free[k]] -= 1
                free[k] += sign * n
                level[free[k]] += 1
                total += sign * n
    return waiting, most, queued, blocked, partial
