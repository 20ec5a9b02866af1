"""Compiled loop: what two GPUs hold, dealt between them anew, until none holds too much."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray
from optgap.solvers.consolidation.squeeze_kernels import FITS, excess, holds, shift

MOST_EACH = 7
"""Tasks of either GPU that are dealt at most: any of them may go, or stay."""


@inner
def _movable(
    gpu: int, to: int, start: IntArray, owner: IntArray, level: IntArray, cap: IntArray,
    gang: bool, place: IntArray, draw: np.random.Generator, chosen: IntArray,
) -> int:  # fmt: skip
    """Entries of a GPU that may be on the other; a random few where there are many."""
    count, seen = 0, 0
    for m in range(len(owner)):
        if place[m] != gpu:
            continue
        ell = owner[m]
        several = start[ell + 1] - start[ell] > 1
        if level[ell] > cap[to] or (several and (gang or holds(place, start, ell, to))):
            continue
        seen += 1
        if count < MOST_EACH:
            chosen[count] = m
            count += 1
        else:
            k = draw.integers(0, seen)
            if k < MOST_EACH:
                chosen[k] = m
    return count


@inner
def _sums(chosen: IntArray, count: int, owner: IntArray, rows: IntArray, sums: IntArray) -> None:
    """(2^count, R) what each choice of the entries holds."""
    for r in range(sums.shape[1]):
        sums[0, r] = 0
    for k in range(count):
        for mask in range(1 << k):
            for r in range(sums.shape[1]):
                sums[mask | (1 << k), r] = sums[mask, r] + rows[r, owner[chosen[k]]]


@inner
def _over(load: IntArray, limit: IntArray, plus: IntArray, minus: IntArray) -> float:
    total = 0.0
    for r in range(len(limit)):
        held = load[r] + plus[r] - minus[r]
        if held > limit[r]:
            total += (held - limit[r]) / max(1, limit[r])
    return total


@compiled
def exchange(
    start: IntArray,
    owner: IntArray,
    rows: IntArray,
    limit: IntArray,
    level: IntArray,
    cap: IntArray,
    gang: bool,
    place: IntArray,
    pairs: int,
    noise: float,
    draw: np.random.Generator,
) -> float:
    """What GPUs hold in excess at the end, 0 if all fits; see `squeeze` for the others.

    In each round a GPU that holds too much is dealt anew with others, until one of them makes
    the excess less; where none does, with one of them for about the same excess.

    Parameters
    ----------
    pairs: of GPUs, at most, that are looked at. noise: how much more of a GPU that may be.
    """
    gpus, count = len(cap), len(limit)
    load = np.zeros((gpus, count), dtype=np.int64)
    for m in range(len(owner)):
        shift(load[place[m]], rows, owner[m], 1)
    over: FloatArray = np.zeros(gpus)
    mine, theirs = np.zeros(MOST_EACH, dtype=np.int64), np.zeros(MOST_EACH, dtype=np.int64)
    out = np.zeros((1 << MOST_EACH, count), dtype=np.int64)
    back = np.zeros((1 << MOST_EACH, count), dtype=np.int64)
    while pairs > 0:
        full = 0
        for g in range(gpus):
            over[g] = excess(load[g], limit, rows, -1, -1)
            full += over[g] > FITS
        if full == 0:
            return 0.0
        pick, a = int(draw.integers(0, full)), -1
        for g in range(gpus):
            if over[g] > FITS:
                if pick == 0:
                    a = g
                pick -= 1
        first = draw.integers(0, gpus)
        for turn in range(gpus + 1):
            b = int((first + turn) % gpus)
            pairs -= 1
            if b == a or cap[b] < 0:
                continue
            many = _movable(a, b, start, owner, level, cap, gang, place, draw, mine)
            more = _movable(b, a, start, owner, level, cap, gang, place, draw, theirs)
            _sums(mine, many, owner, rows, out)
            _sums(theirs, more, owner, rows, back)
            now = over[a] + over[b]
            slack = noise if turn == gpus else 0.0  # none helps: another way to hold as much
            best, give, take = 1e300, 0, 0
            for i in range(1 << many):
                for j in range(1 << more):
                    if i + j == 0:
                        continue
                    total = _over(load[a], limit, back[j], out[i])
                    if total >= best:
                        continue
                    total += _over(load[b], limit, out[i], back[j])
                    if slack > 0:
                        total += slack * draw.random()
                    if total < best:
                        best, give, take = total, i, j
            if best >= now - FITS and not (turn == gpus and best <= now + noise):
                continue
            for k in range(many):
                if give >> k & 1:
                    shift(load[a], rows, owner[mine[k]], -1)
                    shift(load[b], rows, owner[mine[k]], 1)
                    place[mine[k]] = b
            for k in range(more):
                if take >> k & 1:
                    shift(load[b], rows, owner[theirs[k]], -1)
                    shift(load[a], rows, owner[theirs[k]], 1)
                    place[theirs[k]] = a
            break
    total = 0.0
    for g in range(gpus):
        total += excess(load[g], limit, rows, -1, -1)
    return 0.0 if total <= FITS else total
