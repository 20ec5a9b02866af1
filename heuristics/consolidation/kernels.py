"""Compiled loop of CATS: how the residents of GPUs correlate with a newcomer."""

from __future__ import annotations

import numpy as np

from optgap.heuristics.consolidation.loop import Tables
from optgap.models.compiled import compiled, inner
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.times import TOLERANCE_S


@inner
def _aggregate(tables: Tables, gpu: int, first: IntArray, total: FloatArray) -> int:
    """Σ of a GPU's residents' series, each from sample `first` on, into `total`; its length.

    A resident whose series has run out contributes its last sample as long as another lasts.
    """
    longest = 1
    for m in range(tables.many[gpu]):
        longest = max(longest, tables.length[tables.held[gpu, m]] - first[m])
    longest = min(longest, len(total))
    for t in range(longest):
        value = 0.0
        for m in range(tables.many[gpu]):
            task = tables.held[gpu, m]
            k = min(first[m] + t, tables.length[task] - 1)
            value += tables.series[tables.offset[task] + k]
        total[t] = value
    return longest


@inner
def _pearson(x: FloatArray, y: FloatArray) -> float:
    """Correlation of two series of one length; 0 where one is constant."""
    n = len(x)
    a = b = 0.0
    for t in range(n):
        a += x[t]
        b += y[t]
    a /= n
    b /= n
    ab = aa = bb = 0.0
    for t in range(n):
        u, v = x[t] - a, y[t] - b
        ab += u * v
        aa += u * u
        bb += v * v
    if aa > 1e-12 * n and bb > 1e-12 * n:
        return float(ab / np.sqrt(aa * bb))
    return 0.0


@compiled
def correlate(
    tables: Tables,
    gpus: IntArray,
    own: FloatArray,
    now: float,
    from_start: bool,
    limit: float,
    means: FloatArray,
    rhos: FloatArray,
) -> None:
    """Mean of each GPU's aggregate series, and its Pearson correlation with `own`.

    Series are cut to the shorter; 0 where one is constant or has fewer than two samples, and where
    the aggregate's mean is above `limit`: nobody asks there.

    Parameters
    ----------
    from_start: residents' series from their beginning, not from `now` on.
    """
    total = np.zeros(max(1, int(tables.length.max())))
    first = np.zeros(tables.held.shape[1], dtype=np.int64)
    slack = min(TOLERANCE_S, tables.period / 2)
    for c in range(len(gpus)):
        g = gpus[c]
        for m in range(tables.many[g]):
            task = tables.held[g, m]
            done = tables.progress[task] + (now - tables.since[task]) * tables.rate[task]
            reached = min(tables.length[task] - 1, int((done + slack) / tables.period))
            first[m] = 0 if from_start else reached
        longest = _aggregate(tables, g, first, total)
        mean = 0.0
        for t in range(longest):
            mean += total[t]
        means[c] = mean / longest
        n = min(longest, len(own))
        rhos[c] = 0.0
        if n >= 2 and means[c] <= limit:
            rhos[c] = _pearson(total[:n], own[:n])
