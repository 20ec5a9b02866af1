"""A bound on the energy of every schedule that runs all tasks, see docs/consolidation-bounds.md.

The larger of two counts: *work*, each second of progress at its least price, shared in proportion
to memory or utilisation; and *presence*, where tasks start when they are submitted, the count by
level of those that are there for certain.
"""

from __future__ import annotations

import bisect
import math

import numpy as np

from optgap.models.consolidation import ConsolidationProblem, Task
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.bounds import least_static_w
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, FloatArray
from optgap.solvers.consolidation.outcome import Bound, bound_only


def bound_energy(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the larger of `work_j` and, without waiting, `presence_j`."""
    instance = instance_of(problem)
    best, by = work_j(instance), "energy of the work itself"
    if not problem.rules.waiting:
        there = presence_j(instance)
        if there > best:
            best, by = there, "power of the tasks that are there for certain, over time"
    return bound_only(Bound(best * (1 - BOUND_SAFETY), by, ()), limits)


def work_j(instance: Instance) -> float:
    """Return the energy of the work, J."""
    problem = instance.problem
    by_memory, by_asking = [], []
    for ell, task in enumerate(problem.tasks):
        busy = task.util_percent / 100
        lasting = sample_times(task, problem.period_s)
        price = _price(instance, ell) * task.gpus
        by_memory.append(price * float(lasting.sum()) * float(problem.memory[ell]))
        by_asking.append(price * float((busy * lasting).sum()))
    best = math.fsum(by_memory) / float(problem.gpu_memory.max())
    return max(best, math.fsum(by_asking)) if problem.rules.contention >= 1 else best


def sample_times(task: Task, period_s: float) -> FloatArray:
    """Return the progress that each sample of a task covers, s; the last holds to the end."""
    ends = np.minimum(np.arange(1, task.util_percent.size + 1) * period_s, task.duration_s)
    ends[-1] = task.duration_s
    return np.asarray(np.diff(ends, prepend=0.0))


def _price(instance: Instance, task: int) -> float:
    """Return min over kinds and clocks of P(f)/(f/f_max)^β, J per s of progress on one GPU.

    P is the task's own line with the least share of a server's static power. The price has one
    minimum: where P' f = β P, else at an end of the range.
    """
    problem = instance.problem
    share = float((instance.server_w / instance.server_gpus).min())
    best = math.inf
    for k in sorted(set(problem.gpu_kind.tolist())):
        kind, own = problem.kinds[k], problem.tasks[task]
        line, beta = problem.line(task, k), kind.beta if own.beta is None else own.beta
        static, slope = line.static_w + share, line.slope_w_per_mhz
        low, high = kind.floor_mhz(own.kappa, own.beta), kind.f_max_mhz
        clocks = [low, high]
        if beta < 1:
            clocks.append(min(high, max(low, beta * static / max((1 - beta) * slope, 1e-300))))
        best = min(best, *((static + slope * f) / (f / high) ** beta for f in clocks))
    return best


def presence_j(instance: Instance) -> float:
    """Return ∫ of the least power of the tasks that are there for certain, J."""
    problem = instance.problem
    order = np.argsort(-instance.least_watts, kind="stable")
    rank = np.empty(instance.tasks, dtype=np.int64)
    rank[order] = np.arange(instance.tasks)
    events = sorted(
        [(t.submit_s, 1, ell) for ell, t in enumerate(problem.tasks)]
        + [(t.submit_s + t.duration_s, 0, ell) for ell, t in enumerate(problem.tasks)]
    )
    there: list[int] = []
    total, before = [], 0.0
    watts = 0.0
    for time, arrives, ell in events:
        if time > before:
            total.append(watts * (time - before))
            before = time
        place = bisect.bisect_left(there, int(rank[ell]))
        if arrives:
            there.insert(place, int(rank[ell]))
        else:
            there.pop(place)
        watts = least_power(instance, order[there]) if there else 0.0
    return math.fsum(total)


def least_power(instance: Instance, tasks: np.ndarray) -> float:
    """Least power of `tasks`, given dearest first, W.

    The b-th dearest GPU costs at least as much as the task that makes b GPUs necessary.
    """
    width = instance.width[tasks]
    needed = np.maximum.accumulate(width).astype(np.int64)
    for r, limit in enumerate(instance.max_capacity.tolist()):
        if limit:
            filled = np.cumsum(instance.demand[r, tasks] * width)
            needed = np.maximum(needed, -(-filled // limit))
    opened: FloatArray = np.diff(needed, prepend=0).astype(np.float64)
    return float((opened * instance.least_watts[tasks]).sum()) + least_static_w(
        instance, int(needed[-1])
    )
