"""The optimum of elastic jobs with free restarts by definition: plain arrays, no method of ours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]
Events = tuple[tuple[str, int], ...]


def orders(jobs: int) -> Iterator[Events]:
    """Every order of submissions (ascending) and completions, none before its submission."""
    for ends in itertools.permutations(range(jobs)):
        for places in itertools.combinations(range(2 * jobs), jobs):
            submitted, ended, order = 0, 0, []
            for at in range(2 * jobs):
                if at in places:
                    order.append(("submit", submitted))
                    submitted += 1
                elif ends[ended] < submitted:
                    order.append(("end", ends[ended]))
                    ended += 1
                else:
                    break
            else:
                yield tuple(order)


def joint(
    speeds: Sequence[Floats], watts: Sequence[Floats], counts: Floats, gpus: int, limit_w: float
) -> Floats:
    """(Q, J) shares per second of every joint configuration within both capacities."""
    rows = []
    options = [[None, *zip(*np.nonzero(s), strict=True)] for s in speeds]
    for pick in itertools.product(*options):
        used = sum(counts[p[0]] for p in pick if p is not None)
        power = sum(watts[j][p] for j, p in enumerate(pick) if p is not None)
        if used <= gpus and power <= limit_w:
            rows.append([0.0 if p is None else speeds[j][p] for j, p in enumerate(pick)])
    return np.array(rows)


def least(order: Events, submit_s: Floats, rates: Floats) -> float:
    """Least Σ completions of one order of events, s; infinite where it is impossible."""
    jobs, many, events = len(submit_s), len(rates), len(order)
    unit = 1.0 / rates.max(axis=0).min()  # s: the longest job alone
    blocks, first, last = [], {}, {}
    for i, (kind, j) in enumerate(order):  # interval i ends with event i
        (first if kind == "submit" else last)[j] = i
    for i in range(events):
        idle = [j for j in range(jobs) if not first[j] < i <= last[j]]
        blocks.append(np.flatnonzero((rates[:, idle] == 0).all(axis=1)))
    of = np.concatenate([np.full(len(b), i) for i, b in enumerate(blocks)])
    which = np.concatenate(blocks)
    assert len(which) <= events * many
    cost = sum((of <= last[j]).astype(float) for j in range(jobs))
    equal = [rates[which, j] * unit for j in range(jobs)]
    equal += [(of <= first[j]).astype(float) for j in range(jobs)]
    right = [*np.ones(jobs), *((submit_s - submit_s[0]) / unit)]
    found = linprog(cost, A_eq=np.array(equal), b_eq=np.array(right), method="highs")
    if found.status == 2:
        return math.inf
    assert found.status == 0, found.message
    return float(found.fun) * unit + jobs * float(submit_s[0])


def optimum(
    submit_s: Floats, iterations: Floats, time_s: Floats, power_w: Floats, counts: Floats,
    gpus: int, limit_w: float,
) -> float:  # fmt: skip
    """Least mean of completion − submission, s.

    submit_s, iterations: (J,), ascending; time_s: (J, K, F) s per iteration, infinite where there
    is none; power_w: (J, K, F) W; counts: (K,).
    """
    speeds = [1.0 / (time_s[j] * iterations[j]) for j in range(len(submit_s))]
    rates = np.unique(joint(speeds, list(power_w), counts, gpus, limit_w), axis=0)
    ahead = (rates[None, :, :] >= rates[:, None, :]).all(axis=2)
    same = (rates[:, None, :] > 0) == (rates[None, :, :] > 0)  # an idle job stays idle
    np.fill_diagonal(ahead, False)
    rates = rates[~(ahead & same.all(axis=2)).any(axis=1)]
    best = min(least(order, submit_s, rates) for order in orders(len(submit_s)))
    return (best - math.fsum(submit_s.tolist())) / len(submit_s)
