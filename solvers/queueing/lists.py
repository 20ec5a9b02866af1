"""Schedules from a list of jobs: each in turn as early as it fits among those placed before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray, IntArray

Held = list[tuple[int, int]]
"""(node, GPUs) pairs of a job."""
LONG = 300
"""Longer streams get fewer lists: building a schedule takes the cube of their length."""
SHUFFLES = 20


def best_list(problem: QueueingProblem, seed: int) -> Iterator[QueueingSolution]:
    """The schedules of some lists: by arrival, run time, work, GPUs, and at random."""
    jobs, count = problem.jobs, len(problem)
    number = np.arange(count)
    orders = [number]
    if count <= LONG:
        for key in (jobs.duration_s, jobs.gpu_seconds, -jobs.gpus, -jobs.duration_s):
            orders.append(np.lexsort((number, key)))
        orders.append(np.argsort(jobs.arrival_s + jobs.duration_s, kind="stable"))
    if count <= 20:
        rng = np.random.default_rng(seed)
        orders += [rng.permutation(count) for _ in range(SHUFFLES)]
    for order in orders:
        yield schedule(problem, order)


def settled(problem: QueueingProblem, order: list[int], held: list[Held]) -> QueueingSolution:
    """Each job of a list as early as its nodes are free, these being given.

    If the list is in order of the starts of a schedule, no job starts later than in that one.
    """
    jobs, (_, g) = problem.jobs, problem.shape
    start = np.full(len(order), np.nan)
    placed: list[tuple[float, float, dict[int, int]]] = []
    for job in order:
        arrival, length = float(jobs.arrival_s[job]), float(jobs.duration_s[job])
        mine = dict(held[job])
        rivals = [item for item in placed if item[1] > arrival and mine.keys() & item[2].keys()]

        def fits(t: float, wanted: dict[int, int] = mine, others: object = rivals) -> bool:
            now = [used for s, e, used in others if s <= t < e]  # type: ignore[attr-defined]
            return all(sum(u.get(k, 0) for u in now) + n <= g for k, n in wanted.items())

        for t in sorted({arrival, *(e for _, e, _ in rivals)}):
            inside = [s for s, _, _ in rivals if t < s < t + length]
            if all(fits(x) for x in (t, *inside)):
                start[job] = t
                break
        placed.append((float(start[job]), float(start[job]) + length, mine))
    return QueueingSolution.on_nodes(problem, start, held)


def schedule(problem: QueueingProblem, order: IntArray) -> QueueingSolution:
    """The schedule of a list; every job on the lowest nodes that are free for all its time."""
    nodes, g = problem.shape
    jobs = problem.jobs
    at = np.concatenate([[0], np.cumsum(-(-jobs.gpus // g))]).astype(np.int64)
    held = np.zeros((2, int(at[-1])), dtype=np.int64)
    start = placed(
        order.astype(np.int64), jobs.arrival_s.copy(), jobs.duration_s.copy(), jobs.gpus.copy(),
        nodes, g, at, held,
    )  # fmt: skip
    return QueueingSolution.of(problem, start, at, held[0], held[1])


@compiled
def placed(
    order: IntArray,
    arrival: FloatArray,
    duration: FloatArray,
    gpus: IntArray,
    nodes: int,
    g: int,
    at: IntArray,
    held: IntArray,
) -> FloatArray:
    """Start times, s; writes nodes and GPUs to `held`.

    A job starts at its arrival or at the end of another, the first of these from which on its GPUs
    stay free: by best fit on the least GPUs free at the busiest moment of its time.
    """
    count = len(arrival)
    start = np.full(count, np.nan)
    spare = np.zeros(nodes, dtype=np.int64)
    for i in range(count):
        j = order[i]
        best = np.inf
        for c in range(-1, i):
            t = arrival[j] if c < 0 else start[order[c]] + duration[order[c]]
            if t < arrival[j] or t >= best:
                continue
            _spare(order, i, start, duration, g, at, held, t, t + duration[j], spare)
            whole, rest = gpus[j] // g, gpus[j] % g
            full = (spare == g).sum()
            if full < whole:
                continue
            if rest > 0 and full == whole and not ((spare >= rest) & (spare < g)).any():
                continue
            best = t
        start[j] = best
        _spare(order, i, start, duration, g, at, held, best, best + duration[j], spare)
        _give(spare, gpus[j], g, at[j], held)
    return start


@compiled
def _spare(
    order: IntArray,
    known: int,
    start: FloatArray,
    duration: FloatArray,
    g: int,
    at: IntArray,
    held: IntArray,
    low: float,
    high: float,
    spare: IntArray,
) -> None:
    """GPUs per node that stay free between two times beside the first `known` jobs of the list."""
    spare[:] = g
    used = np.zeros_like(spare)
    for c in range(-1, known):
        t = low if c < 0 else start[order[c]]
        if t < low or t >= high:
            continue
        used[:] = 0
        for b in range(known):
            k = order[b]
            if start[k] <= t < start[k] + duration[k]:
                for h in range(at[k], at[k + 1]):
                    used[held[0, h]] += held[1, h]
        for node in range(len(spare)):
            spare[node] = min(spare[node], g - used[node])


@compiled
def _give(spare: IntArray, n: int, g: int, at: int, held: IntArray) -> None:
    """Nodes for n GPUs: the lowest whole ones, and best fit for what is left over."""
    whole, rest = n // g, n % g
    used = 0
    for node in range(len(spare)):
        if used < whole and spare[node] == g:
            held[0, at + used], held[1, at + used] = node, g
            spare[node] = -1
            used += 1
    if rest > 0:
        best = -1
        for node in range(len(spare)):
            if spare[node] >= rest and (best < 0 or spare[node] < spare[best]):
                best = node
        held[0, at + used], held[1, at + used] = best, rest
