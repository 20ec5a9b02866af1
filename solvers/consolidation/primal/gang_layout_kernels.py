"""Compiled loops of gang layouts: what room beside tasks of several GPUs is worth, and where those
tasks go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray


@compiled
def room_worth(
    size: IntArray, profit: FloatArray, level: IntArray, rents: FloatArray, cells: IntArray
) -> FloatArray:
    """(Q, X+1, Y+1) the most that tasks of one GPU earn in x, y cells, less the GPU's rent.

    The GPU has level q already, and takes a higher one where that earns more.

    Parameters
    ----------
    size: (2, n) cells of each task on two lines. profit: (n,). level: (n,) ascending.
    rents: (Q,) of a GPU of each level. cells: (2,) X and Y.
    """
    most_x, most_y = cells[0], cells[1]
    earned = np.zeros((most_x + 1, most_y + 1))
    worth = np.zeros((len(rents), most_x + 1, most_y + 1))
    k = 0
    for q in range(len(rents)):
        while k < len(profit) and level[k] <= q:
            a, b, more = size[0, k], size[1, k], profit[k]
            for x in range(most_x, a - 1, -1):
                for y in range(most_y, b - 1, -1):
                    earned[x, y] = max(earned[x, y], earned[x - a, y - b] + more)
            k += 1
        for x in range(most_x + 1):
            for y in range(most_y + 1):
                worth[q, x, y] = earned[x, y] - rents[q]
    for q in range(len(rents) - 2, -1, -1):
        for x in range(most_x + 1):
            for y in range(most_y + 1):
                worth[q, x, y] = max(worth[q, x, y], worth[q + 1, x, y])
    return worth


class Gangs(NamedTuple):
    """Tasks of several GPUs, and what GPUs hold of them.

    Parameters
    ----------
    demand, width, level: (R, n) and (n,). limit: (R,).
    share: (R,) of a GPU that a unit of each row is; the first row is the first line of room, and
        what is tightest of the others the second.
    room: (G, R) left. on, held: (G, n) and (G,) the tasks on each GPU. top: (G,) level; -1 for
        none.
    cost: (G,) W. number, used: (Q,) and (Q, R) GPUs of each level or higher, and what they hold.
    """

    demand: IntArray
    width: IntArray
    level: IntArray
    limit: IntArray
    share: FloatArray
    room: IntArray
    on: IntArray
    held: IntArray
    top: IntArray
    cost: FloatArray
    number: IntArray
    used: IntArray


@inner
def _measure(gpu: int, gangs: Gangs, worth: FloatArray, penalty: float, over_at_all: float) -> None:
    """Level and cost of a GPU with what is on it, less what its room is worth."""
    top = -1
    for k in range(gangs.held[gpu]):
        top = max(top, gangs.level[gangs.on[gpu, k]])
    gangs.top[gpu], gangs.cost[gpu] = top, 0.0
    if top < 0:
        return
    over, least = 0.0, 1.0
    for r in range(gangs.room.shape[1]):
        left = gangs.room[gpu, r] * gangs.share[r]
        if left < 0:
            over += over_at_all - left
        if r > 0:
            least = min(least, left)
    most_x, most_y = worth.shape[1] - 1, worth.shape[2] - 1
    x = max(0, int(gangs.room[gpu, 0] * gangs.share[0] * most_x + 1e-9))
    y = max(0, int(least * most_y + 1e-9))
    gangs.cost[gpu] = penalty * over - worth[top, x, y]


@inner
def _move(task: int, first: int, sign: int, gangs: Gangs) -> None:
    """Put a task on its run of GPUs (1), or take it away (-1)."""
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
    """Count a GPU (1), or no longer (-1), in all levels up to its own."""
    for q in range(gangs.top[gpu] + 1):
        gangs.number[q] += sign
        for r in range(len(gangs.limit)):
            gangs.used[q, r] += sign * (gangs.limit[r] - gangs.room[gpu, r])


@inner
def _missing(gangs: Gangs, others: IntArray, wanted: IntArray, steps: FloatArray) -> float:
    """What the GPUs cost that are needed beyond those wanted, in W; shares of a GPU count."""
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
    moved: IntArray, goal: IntArray,
) -> int:  # fmt: skip
    """One task and another run for it, or two that change places; how many tasks, 0 for none."""
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
    """The GPUs that a proposal touches; how many."""
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
    pair: int, moved: IntArray, old: IntArray, new: IntArray, near: IntArray, gangs: Gangs,
    worth: FloatArray, penalty: float, over_at_all: float,
) -> float:  # fmt: skip
    """Take tasks off their old runs and put them on new ones: by how much GPUs' costs change."""
    change = 0.0
    for g in near:
        _tally(g, -1, gangs)
        change -= gangs.cost[g]
    for i in range(pair):
        _move(moved[i], old[i], -1, gangs)
    for i in range(pair):
        _move(moved[i], new[i], 1, gangs)
    for g in near:
        _measure(g, gangs, worth, penalty, over_at_all)
        _tally(g, 1, gangs)
        change += gangs.cost[g]
    return change


@compiled
def lay_out(
    worth: FloatArray,
    demand: IntArray,
    limit: IntArray,
    width: IntArray,
    level: IntArray,
    share: FloatArray,
    others: IntArray,
    wanted: IntArray,
    steps: FloatArray,
    weight: float,
    too_full: float,
    over_at_all: float,
    server_gpus: int,
    servers: int,
    first: IntArray,
    moves: int,
    hot: float,
    cold: float,
    draw: np.random.Generator,
) -> float:
    """Anneal runs of GPUs for tasks of several GPUs; the least cost, whose runs are in `first`.

    Parameters
    ----------
    worth: of `room_worth`.
    others: (Q, R) demand of tasks of one GPU, of each level or higher.
    wanted, steps: (Q,) GPUs of each level or higher that there may be, and what one more costs.
    weight: of GPUs beyond those wanted.
    too_full: times the dearest GPU: what one costs that is as much again over its limit.
    over_at_all: the same as a share, of a GPU that is over a limit by however little.
    first: (n,) the first GPU of each task, no run across two servers; replaced.
    """
    rows, n = demand.shape
    gpus = server_gpus * servers
    penalty = too_full * steps.sum()
    gangs = Gangs(
        demand, width, level, limit, share, np.zeros((gpus, rows), dtype=np.int64) + limit,
        np.zeros((gpus, n), dtype=np.int64), np.zeros(gpus, dtype=np.int64),
        np.full(gpus, -1, dtype=np.int64), np.zeros(gpus), np.zeros(len(wanted), dtype=np.int64),
        np.zeros_like(others),
    )  # fmt: skip
    for ell in range(n):
        _move(ell, first[ell], 1, gangs)
    for g in range(gpus):
        _measure(g, gangs, worth, penalty, over_at_all)
        _tally(g, 1, gangs)
    missing = _missing(gangs, others, wanted, steps)
    now = gangs.cost.sum() + weight * missing
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
        some = near[: _touched(pair, moved, goal, first, width, near)]
        change = _exchange(pair, moved, old, goal, some, gangs, worth, penalty, over_at_all)
        after = _missing(gangs, others, wanted, steps)
        change += weight * (after - missing)
        if change <= 0 or draw.random() < np.exp(-change / heat):
            now, missing = now + change, after
            for i in range(pair):
                first[moved[i]] = goal[i]
            if now < best - 1e-9:
                best = now
                found[:] = first
        else:
            _exchange(pair, moved, goal, old, some, gangs, worth, penalty, over_at_all)
    first[:] = found
    return float(best)
