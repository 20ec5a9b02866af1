"""What a schedule looks like over time: queue length and fragmentation, in one sweep."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.queueing.arrays import FloatArray, IntArray, readonly
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
    nodes, g = problem.shape
    counted = problem.placement == "count"
    jobs = len(problem)
    held = (
        (np.arange(jobs + 1), np.zeros(jobs, dtype=np.int64), problem.jobs.gpus)
        if counted
        else (solution.held_at, solution.held_node, solution.held_gpus)
    )
    waiting, most, queued, blocked, partial = _sweep(
        time[order],
        kind[order],
        job[order],
        readonly(problem.jobs.gpus),
        readonly(held[0]),
        readonly(held[1]),
        readonly(held[2]),
        nodes,
        g,
    )
    end = float(solution.end_s[k].max())
    return {
        "queue_mean": queued / max(end - float(arrival[0]), math.ulp(1.0)),
        "queue_max": most,
        "fragmentation_blocked": blocked / waiting if waiting else 0.0,
        "fragmentation_partial": partial / waiting if waiting else 0.0,
    }


@compiled
def _sweep(
    time: FloatArray,
    kind: IntArray,
    job: IntArray,
    gpus: IntArray,
    held_at: IntArray,
    held_node: IntArray,
    held_gpus: IntArray,
    nodes: int,
    g: int,
) -> tuple[float, int, float, float, float]:
    """Time with jobs waiting, longest queue, and the integrals of queue, blocked and partial."""
    free = np.full(nodes, g)
    total, whole = nodes * g, nodes
    here = np.zeros(len(gpus), dtype=np.bool_)
    head, size, most = 0, 0, 0
    waiting = queued = blocked = partial = 0.0
    for e in range(len(time)):
        span = time[e] - time[e - 1] if e else 0.0
        if span > 0 and size > 0:
            while not here[head]:
                head += 1
            waiting += span
            queued += size * span
            most = max(most, size)
            n = gpus[head]
            if n <= total and not _room(free, whole, n, g):
                blocked += span
            if total > 0:
                partial += span * (total - whole * g) / total
        j = job[e]
        if kind[e] == 1:
            here[j] = True
            size += 1
            head = min(head, j)
            continue
        if kind[e] >= 2:
            here[j] = False
            size -= 1
        if kind[e] == 2:
            continue
        sign = -1 if kind[e] == 3 else 1
        for h in range(held_at[j], held_at[j + 1]):
            k = held_node[h]
            whole -= free[k] == g
            free[k] += sign * held_gpus[h]
            whole += free[k] == g
            total += sign * held_gpus[h]
    return waiting, most, queued, blocked, partial


@compiled
def _room(free: IntArray, whole: int, n: int, g: int) -> bool:
    """Whether n GPUs are free as the placement rule wants them."""
    if whole < n // g:
        return False
    rest = n % g
    if rest == 0 or whole > n // g:
        return True
    for f in free:  # noqa: SIM110 -- compiled
        if rest <= f < g:
            return True
    return False
