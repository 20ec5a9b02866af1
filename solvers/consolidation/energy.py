"""A bound on the energy of every schedule that runs all tasks, see docs/consolidation-bounds.md.

Two arguments; the larger counts.

*Work.* A task at clock f makes at most (f/f_max)^β of progress per second, so each second of
progress on one GPU has a price of at least g = min_f P(f)/(f/f_max)^β. Residents share the GPU's
power in proportion to the memory they hold, or to the utilisation they ask for (q ≥ 1: at most
100 % is delivered): neither adds up to more than the whole GPU.

*Presence.* Where tasks start when they are submitted, task l is there from s to s + e at least,
whatever slows it. At each instant the tasks that are there for certain need the power of the
level-by-level count; its integral is a bound.
"""

from __future__ import annotations

import bisect
import math

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation.bounds import bounded
from optgap.solvers.consolidation.levels import least_static
from optgap.solvers.consolidation.packing import FloatArray, Packing, packing

SAFE = 1e-9


def bound_energy(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """The larger of `work_j` and, without waiting, `presence_j`."""
    pack = packing(problem)
    best, by = work_j(pack), "energy of the work itself"
    if not problem.rules.waiting:
        there = presence_j(pack)
        if there > best:
            best, by = there, "power of the tasks that are there for certain, over time"
    return bounded(best * (1 - SAFE), by, limits)


def work_j(pack: Packing) -> float:
    """The energy of the work, J."""
    problem = pack.problem
    price = np.array([_price(pack, ell) for ell in range(pack.tasks)])
    each = price * pack.width
    duration = np.array([task.duration_s for task in problem.tasks])
    by_memory = float((each * duration * problem.memory / problem.gpu_memory.max()).sum())
    best = by_memory
    if problem.rules.contention >= 1:
        asked = np.array([_asked(problem, ell) for ell in range(pack.tasks)])
        best = max(best, float((each * asked).sum()))
    return best


def _asked(problem: ConsolidationProblem, task: int) -> float:
    """∫ u/100 over the task's progress, s."""
    own = problem.tasks[task]
    series, period = own.util_percent, problem.period_s
    ends = np.minimum(np.arange(1, series.size + 1) * period, own.duration_s)
    lasting = np.diff(ends, prepend=0.0)
    more = max(0.0, own.duration_s - series.size * period)
    return float((series * lasting).sum() + series[-1] * more) / 100


def _price(pack: Packing, task: int) -> float:
    """min over kinds and clocks of P(f)/(f/f_max)^β, J per s of progress on one GPU.

    P is the task's own line with the least share of a server's static power. The price has one
    minimum: where P' f = β P, else at an end of the range.
    """
    problem = pack.problem
    share = float((pack.server_w / pack.server_gpus).min())
    best = math.inf
    for k in sorted(set(problem.gpu_kind.tolist())):
        kind, own = problem.kinds[k], problem.tasks[task]
        line, beta = problem.line(task, k), kind.beta if own.beta is None else own.beta
        static, slope = line.static_w + share, line.slope_w_per_mhz
        low, high = kind.floor_mhz(own.kappa, own.beta), kind.f_max_mhz
        clocks = [low, high]
        if slope > 0 and beta < 1:
            clocks.append(min(high, max(low, beta * static / ((1 - beta) * slope))))
        for f in clocks:
            best = min(best, (static + slope * f) / (f / high) ** beta)
    return best


def presence_j(pack: Packing) -> float:
    """∫ of the least power of the tasks that are there for certain, J."""
    problem = pack.problem
    order = np.argsort(-pack.least_watts, kind="stable")
    rank = np.empty(pack.tasks, dtype=np.int64)
    rank[order] = np.arange(pack.tasks)
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
        watts = least_power(pack, order[there]) if there else 0.0
    return math.fsum(total)


def least_power(pack: Packing, tasks: np.ndarray) -> float:
    """Least power of `tasks`, given dearest first, W.

    The b-th dearest GPU costs at least as much as the task that makes b GPUs necessary.
    """
    width = pack.width[tasks]
    needed = np.maximum.accumulate(width).astype(np.int64)
    for r, limit in enumerate(pack.most.tolist()):
        if limit:
            filled = np.cumsum(pack.rows[r, tasks] * width)
            needed = np.maximum(needed, -(-filled // limit))
    opened: FloatArray = np.diff(needed, prepend=0).astype(np.float64)
    return float((opened * pack.least_watts[tasks]).sum()) + least_static(pack, int(needed[-1]))
