"""Workload inflation: a stream of arrivals from a trace."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from optgap.models.errors import InputError, one_of
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.tasks import Tasks

Sampling = Literal["monte-carlo", "trace-first"]


def inflate(
    tasks: Tasks,
    capacity_milli: int,
    load: float,
    rng: np.random.Generator,
    *,
    sampling: Sampling = "monte-carlo",
) -> IntArray:
    """Indices of the arriving tasks, in order, until GPU demand reaches `load` × capacity.

    Parameters
    ----------
    tasks: the trace.
    capacity_milli: GPU capacity of the cluster in milli-GPU.
    load: share of the capacity that arrivals ask for, above 0.
    sampling:
        ``monte-carlo``: drawn from the trace with replacement, as the PWR paper words it; the
        last arrival is the one that reaches the target.
        ``trace-first``: as the public simulators do it: every task of the trace once in random
        order, then drawn with replacement until the next draw's request *per GPU* would pass
        the target; where the trace alone asks for more than the target, tasks are removed at
        random until it no longer does.

    Raises
    ------
    InputError: for a load that is not positive, an unknown `sampling`, or a trace without any
        GPU demand.
    """
    if not 0 < load < 1000:
        raise InputError("load", "", load, "a share of the GPU capacity above 0")
    if sampling not in get_args(Sampling):
        raise InputError("sampling", "", sampling, one_of(get_args(Sampling)))
    target = load * capacity_milli
    if tasks.demand_milli.sum() == 0 or capacity_milli == 0:
        raise InputError("tasks", "", "no GPU demand or no GPUs", "both, to reach a load")
    if sampling == "monte-carlo":
        return _monte_carlo(tasks, target, rng)
    return _trace_first(tasks, target, rng)


def _monte_carlo(tasks: Tasks, target: float, rng: np.random.Generator) -> IntArray:
    chosen: list[IntArray] = []
    total = 0
    while total < target:
        draw = rng.integers(len(tasks), size=4096)
        arrived = total + np.cumsum(tasks.demand_milli[draw])
        reached = np.flatnonzero(arrived >= target)
        stop = int(reached[0]) + 1 if reached.size else len(draw)
        chosen.append(draw[:stop])
        total = int(arrived[stop - 1])
    return np.concatenate(chosen)


def _trace_first(tasks: Tasks, target: float, rng: np.random.Generator) -> IntArray:
    order = [int(k) for k in rng.permutation(len(tasks))]
    total = int(tasks.demand_milli.sum())
    while total > target:
        k = order.pop(int(rng.integers(len(order))))
        total -= int(tasks.demand_milli[k])
    while total < target:
        k = int(rng.integers(len(tasks)))
        if total + int(tasks.gpu_milli[k]) > target:
            break
        order.append(k)
        total += int(tasks.demand_milli[k])
    return np.array(order, dtype=np.int64)
