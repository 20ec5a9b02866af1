"""Consolidation over time once more: all running tasks are looked at for every step of time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from optgap.models.consolidation import ConsolidationProblem, ConsolidationSolution, GpuKind, Task


def overflows(kind: GpuKind, residents: list[Task], capacity: str) -> bool:
    """Whether a GPU has less memory than these ask for, or utilisation where that is counted."""
    pick = {"mean": np.mean, "peak": np.max}.get(capacity, lambda series: 0.0)
    used = sum(float(pick(task.util_percent)) for task in residents)
    return sum(t.memory_gb for t in residents) > kind.memory_gb + 1e-9 or used > 100 + 1e-6


def stepwise(
    problem: ConsolidationProblem,
    solution: ConsolidationSolution,
    done_s: Mapping[int, float] | None = None,
) -> tuple[float, float]:
    """Energy, infinite if a GPU overflows, and the last end.

    Parameters
    ----------
    done_s: of some tasks, how much of them had been done before.
    """
    tasks, rules = problem.tasks, problem.rules
    starts = sorted(solution.assignments, key=lambda a: a.start_s)
    where: dict[int, tuple[int, ...]] = {}
    progress = [(done_s or {}).get(ell, 0.0) for ell in range(len(tasks))]
    now = energy = 0.0
    while starts or where:
        while starts and starts[0].start_s <= now + 1e-9:
            a = starts.pop(0)
            if progress[a.task] < tasks[a.task].duration_s - 1e-6:
                where[a.task] = a.gpus
        awake = {g for gpus in where.values() for g in gpus}
        mhz = {c.gpu: c.mhz for c in solution.clocks if c.time_s <= now + 1e-9}
        times = [a.start_s for a in starts[:1]]
        times += [c.time_s for c in solution.clocks if c.time_s > now + 1e-9]
        util: dict[int, float] = dict.fromkeys(awake, 0.0)
        for ell, gpus in where.items():
            k = int(progress[ell] / problem.period_s + 1e-7)
            for g in gpus:
                util[g] += float(tasks[ell].util_percent[min(k, tasks[ell].util_percent.size - 1)])
        watts = sum(problem.servers[i].static_w for i in {problem.places[g][0] for g in awake})
        for g in awake:
            own = [ell for ell, gpus in where.items() if g in gpus]
            kind = int(problem.gpu_kind[g])
            if overflows(problem.kinds[kind], [tasks[ell] for ell in own], rules.capacity):
                return math.inf, now
            watts += max(problem.line(ell, kind).watts(mhz[g]) for ell in own)
        speed = {}
        for ell, gpus in where.items():
            paces = []
            for g in gpus:
                kind = problem.kinds[int(problem.gpu_kind[g])]
                beta = kind.beta if tasks[ell].beta is None else tasks[ell].beta
                slow = max(1.0, util[g] / 100) ** rules.contention
                paces.append((mhz[g] / kind.f_max_mhz) ** beta / slow)
            speed[ell] = min(paces)
            if speed[ell] > 0:
                ends = (int(progress[ell] / problem.period_s + 1e-7) + 1) * problem.period_s
                times.append(now + (min(tasks[ell].duration_s, ends) - progress[ell]) / speed[ell])
        after = min(times, default=now)
        energy += watts * (after - now)
        for ell in list(where):
            progress[ell] += speed[ell] * (after - now)
            if progress[ell] >= tasks[ell].duration_s - 1e-6:
                del where[ell]
        now = after
    return energy, now
