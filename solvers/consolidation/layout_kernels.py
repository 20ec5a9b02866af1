"""Compiled loops: what room beside tasks of several GPUs is worth, and where those tasks go."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray

TOO_FULL = 50.0
"""Times the cost of a GPU and its server: what a GPU costs that is as much again over its limit."""

AT_ALL = 0.3
"""The same as a share, of a GPU that is over a limit by however little."""


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


@inner
def _cost(
    gpu: int, top: int, room: IntArray, share: FloatArray, worth: FloatArray, penalty: float
) -> float:
    """What a GPU costs with the tasks that are on it, less what its room is worth."""
    if top < 0:
        return 0.0
    over, least = 0.0, 1.0
    for r in range(room.shape[1]):
        left = room[gpu, r] * share[r]
        if left < 0:
            over += AT_ALL - left
        if r > 0:
            least = min(least, left)
    most_x, most_y = worth.shape[1] - 1, worth.shape[2] - 1
    x = max(0, int(room[gpu, 0] * share[0] * most_x + 1e-9))
    y = max(0, int(least * most_y + 1e-9))
    return float(penalty * over - worth[top, x, y])


@inner
def _measure(
    gpu: int, on: IntArray, held: IntArray, level: IntArray, room: IntArray, share: FloatArray,
    worth: FloatArray, penalty: float, top: IntArray, cost: FloatArray,
) -> None:  # fmt: skip
    """Level and cost of a GPU with what is on it."""
    top[gpu] = -1
    for k in range(held[gpu]):
        top[gpu] = max(top[gpu], level[on[gpu, k]])
    cost[gpu] = _cost(gpu, top[gpu], room, share, worth, penalty)


@inner
def _move(
    task: int, first: int, sign: int, width: IntArray, rows: IntArray, room: IntArray,
    on: IntArray, held: IntArray,
) -> None:  # fmt: skip
    """Put a task on its run of GPUs (1), or take it away (-1)."""
    for g in range(first, first + width[task]):
        for r in range(room.shape[1]):
            room[g, r] -= sign * rows[r, task]
        if sign > 0:
            on[g, held[g]] = task
            held[g] += 1
        else:
            k = 0
            while on[g, k] != task:
                k += 1
            held[g] -= 1
            on[g, k] = on[g, held[g]]


@inner
def _tally(
    gpu: int, top: int, sign: int, room: IntArray, limit: IntArray, count: IntArray, used: IntArray
) -> None:
    """Count a GPU (1), or no longer (-1), in all levels up to its own."""
    for q in range(top + 1):
        count[q] += sign
        for r in range(len(limit)):
            used[q, r] += sign * (limit[r] - room[gpu, r])


@inner
def _missing(
    count: IntArray, used: IntArray, others: IntArray, limit: IntArray, wanted: IntArray,
    steps: FloatArray,
) -> float:  # fmt: skip
    """What the GPUs cost that are needed beyond those wanted, in W; shares of a GPU count."""
    total = 0.0
    for q in range(len(wanted)):
        needed = float(count[q])
        for r in range(len(limit)):
            needed = max(needed, (used[q, r] + others[q, r]) / max(1, limit[r]))
        total += steps[q] * max(0.0, needed - wanted[q])
    return total


@compiled
def lay(
    worth: FloatArray,
    rows: IntArray,
    limit: IntArray,
    width: IntArray,
    level: IntArray,
    share: FloatArray,
    others: IntArray,
    wanted: IntArray,
    steps: FloatArray,
    weight: float,
    span: int,
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
    rows, limit: (R, n) demand and (R,) capacity. width, level: (n,).
    share: (R,) of a GPU that a unit of each row is; the first row is the first line, and what is
        tightest of the others the second.
    others: (Q, R) demand of tasks of one GPU, of each level or higher.
    wanted, steps: (Q,) GPUs of each level or higher that there may be, and what one more costs.
    weight: of GPUs beyond those wanted.
    span, servers: GPUs of a server, and servers.
    first: (n,) the first GPU of each task, no run across two servers; replaced.
    """
    count, n = rows.shape
    gpus = span * servers
    penalty = TOO_FULL * steps.sum()
    room = np.zeros((gpus, count), dtype=np.int64)
    on, held = np.zeros((gpus, n), dtype=np.int64), np.zeros(gpus, dtype=np.int64)
    for g in range(gpus):
        room[g] = limit
    for ell in range(n):
        _move(ell, first[ell], 1, width, rows, room, on, held)
    top, cost = np.zeros(gpus, dtype=np.int64), np.zeros(gpus)
    tally, used = np.zeros(len(wanted), dtype=np.int64), np.zeros_like(others)
    now = 0.0
    for g in range(gpus):
        _measure(g, on, held, level, room, share, worth, penalty, top, cost)
        _tally(g, top[g], 1, room, limit, tally, used)
        now += cost[g]
    missing = _missing(tally, used, others, limit, wanted, steps)
    now += weight * missing
    best, found = now, first.copy()
    moved, goal = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    near = np.zeros(4 * span, dtype=np.int64)
    old_cost, old_top = np.zeros(4 * span), np.zeros(4 * span, dtype=np.int64)
    old_tally, old_used = tally.copy(), used.copy()
    for step in range(moves):
        heat = hot * (cold / hot) ** (step / moves)
        moved[0], pair = draw.integers(0, n), 1
        ell = moved[0]
        if draw.random() < 0.5:
            begin = 0
            if width[ell] < span and draw.random() < 0.8:
                begin = width[ell] * draw.integers(0, span // width[ell])
            elif width[ell] < span:
                begin = draw.integers(0, span - width[ell] + 1)
            goal[0] = span * draw.integers(0, servers) + begin
        else:
            moved[1], pair = draw.integers(0, n), 2
            if width[moved[1]] != width[ell]:
                continue
            goal[0], goal[1] = first[moved[1]], first[ell]
        if goal[0] == first[ell]:
            continue
        some = 0
        for i in range(pair):
            for begin in (first[moved[i]], goal[i]):
                for g in range(begin, begin + width[moved[i]]):
                    known = False
                    for k in range(some):
                        known = known or near[k] == g
                    if not known:
                        near[some], old_cost[some], old_top[some] = g, cost[g], top[g]
                        some += 1
        old_tally[:] = tally
        old_used[:] = used
        change = 0.0
        for k in range(some):
            _tally(near[k], top[near[k]], -1, room, limit, tally, used)
            change -= cost[near[k]]
        for i in range(pair):
            _move(moved[i], first[moved[i]], -1, width, rows, room, on, held)
        for i in range(pair):
            _move(moved[i], goal[i], 1, width, rows, room, on, held)
        for k in range(some):
            g = near[k]
            _measure(g, on, held, level, room, share, worth, penalty, top, cost)
            _tally(g, top[g], 1, room, limit, tally, used)
            change += cost[g]
        after = _missing(tally, used, others, limit, wanted, steps)
        change += weight * (after - missing)
        if change <= 0 or draw.random() < np.exp(-change / heat):
            now, missing = now + change, after
            for i in range(pair):
                first[moved[i]] = goal[i]
            if now < best - 1e-9:
                best = now
                found[:] = first
            continue
        tally[:] = old_tally
        used[:] = old_used
        for i in range(pair):
            _move(moved[i], goal[i], -1, width, rows, room, on, held)
        for i in range(pair):
            _move(moved[i], first[moved[i]], 1, width, rows, room, on, held)
        for k in range(some):
            cost[near[k]], top[near[k]] = old_cost[k], old_top[k]
    first[:] = found
    return float(best)
