"""Compiled loops of gang layouts: the value of room, and the annealing of runs of GPUs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray


@compiled
def room_worth(
    size: IntArray, profit: FloatArray, level: IntArray, gpu_prices: FloatArray, cells: IntArray
) -> FloatArray:
    """(Q, X+1, Y+1) the largest dual value of tasks of one GPU in x, y cells less the GPU price.

    A two-dimensional knapsack. The GPU has level q, or a higher one where that is worth more, W.

    Parameters
    ----------
    size: (2, n) cells that each task takes in either dimension. profit: (n,) duals, W.
    level: (n,) ascending. gpu_prices: (Q,) dual price of a GPU, W. cells: (2,) X and Y.
    """
    most_x, most_y = cells[0], cells[1]
    earned = np.zeros((most_x + 1, most_y + 1))
    worth = np.zeros((len(gpu_prices), most_x + 1, most_y + 1))
    k = 0
    for q in range(len(gpu_prices)):
        while k < len(profit) and level[k] <= q:
            a, b, more = size[0, k], size[1, k], profit[k]
            for x in range(most_x, a - 1, -1):
                for y in range(most_y, b - 1, -1):
                    earned[x, y] = max(earned[x, y], earned[x - a, y - b] + more)
            k += 1
        for x in range(most_x + 1):
            for y in range(most_y + 1):
                worth[q, x, y] = earned[x, y] - gpu_prices[q]
    for q in range(len(gpu_prices) - 2, -1, -1):
        for x in range(most_x + 1):
            for y in range(most_y + 1):
                worth[q, x, y] = max(worth[q, x, y], worth[q + 1, x, y])
    return worth


class Gangs(NamedTuple):
    """The tasks of several GPUs, and the state of the GPUs.

    Parameters
    ----------
    demand, width, level: (R, n), (n,) and (n,) of the tasks. limit: (R,) of a GPU.
    worth: of `room_worth`, whose first dimension is row 0, the second the tightest other row.
    overload_w, overload_offset: cost of a GPU over a limit: W for each share of the limit, and the
        share that is added to every overload.
    room: (G, R) capacity left. on, held: (G, n) and (G,) the tasks on each GPU, and how many.
    top: (G,) level of each GPU, -1 for an empty one. cost: (G,) overload less value of room, W.
    number, used: (Q,) and (Q, R) GPUs of each level or more, and demand on them.
    """

    demand: IntArray
    width: IntArray
    level: IntArray
    limit: IntArray
    worth: FloatArray
    overload_w: float
    overload_offset: float
    room: IntArray
    on: IntArray
    held: IntArray
    top: IntArray
    cost: FloatArray
    number: IntArray
    used: IntArray


def empty_gpus(
    demand: IntArray,
    width: IntArray,
    level: IntArray,
    limit: IntArray,
    worth: FloatArray,
    overload_w: float,
    overload_offset: float,
    gpus: int,
) -> Gangs:
    """GPUs that hold nothing."""
    (rows, n), levels = demand.shape, len(worth)
    return Gangs(
        demand, width, level, limit, worth, overload_w, overload_offset, np.tile(limit, (gpus, 1)),
        np.zeros((gpus, n), np.int64), np.zeros(gpus, np.int64), np.full(gpus, -1), np.zeros(gpus),
        np.zeros(levels, np.int64), np.zeros((levels, rows), np.int64)
    )  # fmt: skip


@inner
def _measure(gpu: int, gangs: Gangs) -> None:
    """Update level and cost of a GPU: penalty for overload less the value of its room."""
    top = -1
    for k in range(gangs.held[gpu]):
        top = max(top, gangs.level[gangs.on[gpu, k]])
    gangs.top[gpu], gangs.cost[gpu] = top, 0.0
    if top < 0:
        return
    over, least = 0.0, 1.0
    for r in range(gangs.room.shape[1]):
        left = gangs.room[gpu, r] / max(1, gangs.limit[r])
        if left < 0:
            over += gangs.overload_offset - left
        if r > 0:
            least = min(least, left)
    most_x, most_y = gangs.worth.shape[1] - 1, gangs.worth.shape[2] - 1
    x = max(0, int(gangs.room[gpu, 0] / max(1, gangs.limit[0]) * most_x + 1e-9))
    y = max(0, int(least * most_y + 1e-9))
    gangs.cost[gpu] = gangs.overload_w * over - gangs.worth[top, x, y]


@inner
def _move(task: int, first: int, sign: int, gangs: Gangs) -> None:
    """Put a task on a run of GPUs (sign 1), or take it off (sign -1)."""
    for g in range(first, first + gangs.width[task]):
        for r in range(gangs.room.shape[1]):
            gangs.room[g, r] -= sign * gangs.demand[r, task]
        if sign > 0:
            gangs.on[g, gangs.held[g]] = task
            gangs.held[g] += 1
        else:
            k = 0
            while gangs.on[g, k] != task:
                k += 1
            gangs.held[g] -= 1
            gangs.on[g, k] = gangs.on[g, gangs.held[g]]


@inner
def _tally(gpu: int, sign: int, gangs: Gangs) -> None:
    """Count a GPU (sign 1), or no longer (sign -1), in all levels up to its own."""
    for q in range(gangs.top[gpu] + 1):
        gangs.number[q] += sign
        for r in range(len(gangs.limit)):
            gangs.used[q, r] += sign * (gangs.limit[r] - gangs.room[gpu, r])


@inner
def _missing(gangs: Gangs, others: IntArray, wanted: IntArray, steps: FloatArray) -> float:
    """Power of the GPUs needed beyond the counts wanted, fractions of a GPU included, W."""
    total = 0.0
    for q in range(len(wanted)):
        needed = float(gangs.number[q])
        for r in range(len(gangs.limit)):
            needed = max(needed, (gangs.used[q, r] + others[q, r]) / max(1, gangs.limit[r]))
        total += steps[q] * max(0.0, needed - wanted[q])
    return total


@inner
def _proposal(
    gangs: Gangs, first: IntArray, server_gpus: int, servers: int, draw: np.random.Generator,
    moved: IntArray, goal: IntArray
) -> int:  # fmt: skip
    """Draw a move: a task to another run, or two tasks swapped; how many tasks, 0 for none."""
    moved[0] = draw.integers(0, len(first))
    width = gangs.width[moved[0]]
    if draw.random() < 0.5:
        begin = 0
        if width < server_gpus and draw.random() < 0.8:
            begin = width * draw.integers(0, server_gpus // width)
        elif width < server_gpus:
            begin = draw.integers(0, server_gpus - width + 1)
        goal[0] = server_gpus * draw.integers(0, servers) + begin
        return int(goal[0] != first[moved[0]])
    moved[1] = draw.integers(0, len(first))
    goal[0], goal[1] = first[moved[1]], first[moved[0]]
    return 2 if gangs.width[moved[1]] == width and goal[0] != goal[1] else 0


@inner
def _touched(
    pair: int, moved: IntArray, goal: IntArray, first: IntArray, width: IntArray, near: IntArray
) -> int:
    """Collect the GPUs that a move touches into `near`; how many."""
    some = 0
    for i in range(pair):
        for begin in (first[moved[i]], goal[i]):
            for g in range(begin, begin + width[moved[i]]):
                known = False
                for k in range(some):
                    known = known or near[k] == g
                if not known:
                    near[some] = g
                    some += 1
    return some


@inner
def _exchange(
    pair: int, moved: IntArray, old: IntArray, new: IntArray, near: IntArray, gangs: Gangs
) -> float:
    """Move tasks from their old runs to new ones; the change of the GPUs' costs, W."""
    change = 0.0
    for g in near:
        _tally(g, -1, gangs)
        change -= gangs.cost[g]
    for i in range(pair):
        _move(moved[i], old[i], -1, gangs)
    for i in range(pair):
        _move(moved[i], new[i], 1, gangs)
    for g in near:
        _measure(g, gangs)
        _tally(g, 1, gangs)
        change += gangs.cost[g]
    return change


@compiled
def lay_out(
    gangs: Gangs,
    others: IntArray,
    wanted: IntArray,
    steps: FloatArray,
    shortage_weight: float,
    server_gpus: int,
    first: IntArray,
    moves: int,
    hot: float,
    cold: float,
    draw: np.random.Generator,
) -> float:
    """Anneal the runs of tasks of several GPUs; the least cost found, W, with its runs in `first`.

    Parameters
    ----------
    gangs: of `empty_gpus`; changed.
    others: (Q, R) demand of the tasks of one GPU, of each level or more.
    wanted, steps: (Q,) counts wanted, and what one GPU more of each level costs, W.
    shortage_weight: see `GangLayoutParams`. hot, cold: first and last temperature, W.
    first: (n,) the first GPU of each run, none of which crosses servers; changed.
    """
    n, gpus = len(first), len(gangs.room)
    servers = gpus // server_gpus
    for ell in range(n):
        _move(ell, first[ell], 1, gangs)
    for g in range(gpus):
        _measure(g, gangs)
        _tally(g, 1, gangs)
    missing = _missing(gangs, others, wanted, steps)
    now = gangs.cost.sum() + shortage_weight * missing
    best, found = now, first.copy()
    moved, goal, old = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    near = np.zeros(4 * server_gpus, dtype=np.int64)
    for step in range(moves):
        heat = hot * (cold / hot) ** (step / moves)
        pair = _proposal(gangs, first, server_gpus, servers, draw, moved, goal)
        if pair == 0:
            continue
        for i in range(pair):
            old[i] = first[moved[i]]
        some = near[: _touched(pair, moved, goal, first, gangs.width, near)]
        change = _exchange(pair, moved, old, goal, some, gangs)
        after = _missing(gangs, others, wanted, steps)
        change += shortage_weight * (after - missing)
        if change <= 0 or draw.random() < np.exp(-change / heat):
            now, missing = now + change, after
            for i in range(pair):
                first[moved[i]] = goal[i]
            if now < best - 1e-9:
                best = now
                found[:] = first
        else:
            _exchange(pair, moved, goal, old, some, gangs)
    first[:] = found
    return float(best)
