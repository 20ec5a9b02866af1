"""Compiled loop: what two GPUs hold, dealt between them anew, until none holds too much."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray
from optgap.solvers.consolidation.squeeze_kernels import FITS, excess, holds, loads

MOST_EACH = 7
"""Tasks of either GPU that are dealt at most: any of them may go, or stay."""


@inner
def chained(gpus: int, place: IntArray) -> tuple[IntArray, IntArray]:
    """Chains of what is on each GPU: (gpus,) their first entries and (entries,) the next; or -1."""
    first = np.full(gpus, -1, dtype=np.int64)
    after = np.full(len(place), -1, dtype=np.int64)
    for m in range(len(place)):
        after[m] = first[place[m]]
        first[place[m]] = m
    return first, after


@inner
def _movable(
    gpu: int, to: int, fixed: int, start: IntArray, owner: IntArray, level: IntArray, cap: IntArray,
    apart: bool, place: IntArray, first: IntArray, after: IntArray, draw: np.random.Generator,
    chosen: IntArray,
) -> int:  # fmt: skip
    """Entries of a GPU that may be on the other; a random few where there are many.

    Parameters
    ----------
    fixed: the first so many tasks stay. apart: the GPUs are in two servers that share no task.
    first, after: of `chained`.
    """
    count, seen, m = 0, 0, first[gpu]
    while m >= 0:
        ell = owner[m]
        several = start[ell + 1] - start[ell] > 1
        stays = ell < fixed or level[ell] > cap[to]
        if not stays and not (several and (apart or holds(place, start, ell, to))):
            seen += 1
            if count < MOST_EACH:
                chosen[count] = m
                count += 1
            else:
                k = draw.integers(0, seen)
                if k < MOST_EACH:
                    chosen[k] = m
        m = after[m]
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
def choices(
    gpu: int, to: int, fixed: int, start: IntArray, owner: IntArray, rows: IntArray,
    level: IntArray, cap: IntArray, apart: bool, place: IntArray, first: IntArray, after: IntArray,
    draw: np.random.Generator, chosen: IntArray, sums: IntArray,
) -> int:  # fmt: skip
    """Entries of a GPU that may be on the other, and what each choice of them holds; how many."""
    count = _movable(
        gpu, to, fixed, start, owner, level, cap, apart, place, first, after, draw, chosen
    )
    _sums(chosen, count, owner, rows, sums)
    return count


@inner
def _over(load: IntArray, limit: IntArray, plus: IntArray, minus: IntArray) -> float:
    """What a GPU holds beyond its limits with more tasks and without others."""
    total = 0.0
    for r in range(len(limit)):
        held = load[r] + plus[r] - minus[r]
        if held > limit[r]:
            total += (held - limit[r]) / max(1, limit[r])
    return total


@inner
def _dealt(
    load: IntArray, other: IntArray, limit: IntArray, out: IntArray, back: IntArray, slack: float,
    draw: np.random.Generator,
) -> tuple[float, int, int]:  # fmt: skip
    """The least excess of two GPUs, and the choices that are given and taken for it.

    Parameters
    ----------
    out, back: what each choice of one GPU's tasks, and of the other's, holds.
    slack: how much worse, at random, a choice may be thought to be.
    """
    best, give, take = 1e300, 0, 0
    for i in range(len(out)):
        for j in range(len(back)):
            if i + j == 0:
                continue
            total = _over(load, limit, back[j], out[i])
            if total >= best:
                continue
            total += _over(other, limit, out[i], back[j])
            if slack > 0:
                total += slack * draw.random()
            if total < best:
                best, give, take = total, i, j
    return best, give, take


@inner
def send(
    a: int, b: int, choice: int, chosen: IntArray, count: int, place: IntArray, first: IntArray,
    after: IntArray,
) -> None:  # fmt: skip
    """Move a choice of entries from one GPU to the other."""
    for k in range(count):
        if choice >> k & 1:
            m = chosen[k]
            place[m] = b
            if first[a] == m:
                first[a] = after[m]
            else:
                before = first[a]
                while after[before] != m:
                    before = after[before]
                after[before] = after[m]
            after[m] = first[b]
            first[b] = m


@compiled
def exchange(
    start: IntArray,
    owner: IntArray,
    rows: IntArray,
    limit: IntArray,
    level: IntArray,
    cap: IntArray,
    width: int,
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
    load = loads(gpus, owner, rows, place)
    first, after = chained(gpus, place)
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
        begin = draw.integers(0, gpus)
        for turn in range(gpus + 1):
            b = int((begin + turn) % gpus)
            pairs -= 1
            if b == a or cap[b] < 0:
                continue
            apart = gang and a // width != b // width
            many = choices(
                a, b, 0, start, owner, rows, level, cap, apart, place, first, after, draw, mine, out
            )
            more = choices(
                b, a, 0, start, owner, rows, level, cap, apart, place, first, after, draw, theirs,
                back,
            )  # fmt: skip
            now = over[a] + over[b]
            slack = noise if turn == gpus else 0.0  # none helps: another way to hold as much
            best, give, take = _dealt(
                load[a], load[b], limit, out[: 1 << many], back[: 1 << more], slack, draw
            )
            if best >= now - FITS and not (turn == gpus and best <= now + noise):
                continue
            load[a] += back[take] - out[give]
            load[b] += out[give] - back[take]
            send(a, b, give, mine, many, place, first, after)
            send(b, a, take, theirs, more, place, first, after)
            break
    total = 0.0
    for g in range(gpus):
        total += excess(load[g], limit, rows, -1, -1)
    return 0.0 if total <= FITS else total
