"""Simulated annealing over lists of jobs that start strictly in turn, compiled."""

# ruff: noqa: NPY002 - inside compiled code these are the compiler's own, seeded per call

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.queueing.kernels import fits, place, take
from optgap.models.times import slack_s

slack = inner(slack_s)
REACH = 40
"""Places that a job is moved by, at most."""
LATE = 1e6
"""What a second after a job's patience has ended costs."""


@compiled
def in_turn(
    order: IntArray,
    jobs: FloatArray,
    gpus: IntArray,
    shape: tuple[int, int],
    at: IntArray,
    start: FloatArray,
    held: IntArray,
    makespan: bool,
    most: float,
) -> float:
    """Cost of a list, infinite once it exceeds `most`; writes starts and nodes.

    Each job starts as early as it fits, but not before the one ahead of it in the list.

    Parameters
    ----------
    jobs: arrival, duration and the latest start, s, shape (J, 3).
    at: where each job's nodes and GPUs stand in `held`.
    """
    nodes, g = shape
    count = len(order)
    free, level = np.full(nodes, g), np.zeros(g + 1, dtype=np.int64)
    level[g] = nodes
    ends, running = np.empty(count), np.empty(count, dtype=np.int64)  # by descending end
    size, now, cost, last = 0, 0.0, 0.0, 0.0
    for j in order:
        now = max(now, jobs[j, 0])
        while size > 0 and (
            ends[size - 1] <= now + slack(now) or not fits(free, level, gpus[j], g)
        ):
            size -= 1
            now = max(now, ends[size])
            ended = running[size]
            for h in range(at[ended], at[ended + 1]):
                take(free, level, held[0, h], -held[1, h])
        place(free, level, gpus[j], g, held[0], held[1], at[j])
        start[j] = now
        end = now + jobs[j, 1]
        k = size
        while k > 0 and ends[k - 1] < end:
            ends[k], running[k] = ends[k - 1], running[k - 1]
            k -= 1
        ends[k], running[k] = end, j
        size += 1
        cost += (now - jobs[j, 0]) * (1e-3 if makespan else 1.0)
        if makespan and end > last:
            cost += (end - last) * count
            last = end
        cost += LATE * max(0.0, now - jobs[j, 2] - slack(now))
        if cost > most:
            return np.inf
    return cost


@compiled
def anneal(
    order: IntArray,
    best: IntArray,
    costs: FloatArray,
    heats: FloatArray,
    seed: int,
    jobs: FloatArray,
    gpus: IntArray,
    shape: tuple[int, int],
    at: IntArray,
    held: IntArray,
    makespan: bool,
) -> None:
    """One move per entry of `heats`; `costs` are those of `order` and of `best`, both kept."""
    np.random.seed(seed)
    count = len(order)
    start = np.empty(count)
    for heat in heats:
        p = np.random.randint(count)
        q = p + np.random.randint(-REACH, REACH + 1)
        if not 0 <= q < count or p == q:
            continue
        swap = np.random.randint(2) == 0
        _move(order, p, q, swap)
        most = costs[0] - heat * np.log(1.0 - np.random.random())
        cost = in_turn(order, jobs, gpus, shape, at, start, held, makespan, most)
        if cost == np.inf:
            _move(order, q, p, swap)
            continue
        costs[0] = cost
        if cost < costs[1]:
            costs[1] = cost
            best[:] = order


@compiled
def _move(order: IntArray, p: int, q: int, swap: bool) -> None:
    """Swap two places of a list, or take a job from one to the other."""
    job = order[p]
    if swap:
        order[p] = order[q]
    step = 1 if q > p else -1
    if not swap:
        for k in range(p, q, step):
            order[k] = order[k + step]
    order[q] = job
