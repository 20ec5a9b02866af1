"""Compiled pricing: the cheapest course of each task, for prices of presence, progress and work."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled
from optgap.solvers.consolidation.numerics import FloatArray, IntArray


@compiled
def cheapest_courses(
    cover: FloatArray,
    first: IntArray,
    effort: FloatArray,
    presence: FloatArray,
    progress: FloatArray,
    waits: bool,
    finish: IntArray,
    pace: FloatArray,
) -> FloatArray:
    """Return (L,) the least cost of each task over all buckets it may end in.

    Before that bucket it is present all the time and makes as much progress as it likes in each, up
    to one second per second; in that bucket it is present for as long as it makes progress there,
    all of it where presence has a negative price (it has none in the last bucket).
    Where tasks wait that is so in every bucket.

    Parameters
    ----------
    cover, first, effort: as in `Relaxation`.
    presence, progress: (L, K) prices of a second.
    finish: (L,) the bucket of the end goes here. pace: (L, K) and the progress, s, here.
    """
    tasks, buckets = cover.shape
    costs = np.full(tasks, np.inf)
    own = np.zeros(buckets)
    for ell in range(tasks):
        begin = first[ell]
        price = progress[ell].copy()
        if waits:
            price += presence[ell]
        order = np.argsort(price[begin:]) + begin
        there, room, best = 0.0, 0.0, -1
        saved = (np.minimum(0.0, presence[ell, begin:-1]) * cover[ell, begin:-1]).sum()
        for end in range(begin, buckets):
            if waits and end < buckets - 1:
                continue
            room += cover[ell, end]
            if room >= effort[ell]:
                last = price[end] if waits else price[end] + max(0.0, presence[ell, end])
                cost, left = there, effort[ell]
                if not waits and end < buckets - 1:
                    cost += min(0.0, presence[ell, end]) * cover[ell, end]
                own[begin:] = 0.0
                taken = False
                for k in order:
                    if not taken and price[k] >= last:  # presence makes its own bucket dearer
                        taken = True
                        own[end] = min(left, cover[ell, end])
                        cost += last * own[end]
                        left -= own[end]
                    if k < end and left > 0.0:
                        own[k] = min(left, cover[ell, k])
                        cost += price[k] * own[k]
                        left -= own[k]
                    if left <= 0.0 or cost >= costs[ell]:
                        break
                if not taken and left > 0.0:
                    own[end] = left
                    cost += last * left
                    left = 0.0
                if cost < costs[ell]:
                    costs[ell], best = cost, end
                    pace[ell, :] = 0.0
                    pace[ell, begin:] = own[begin:]
            if not waits and end < buckets - 1:
                there += presence[ell, end] * cover[ell, end]
                if there + saved >= costs[ell]:
                    break
        finish[ell] = best
    return costs
