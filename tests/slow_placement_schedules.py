"""Every schedule of a tiny problem over time without waiting: the optimum by definition.

Plain Python and the problem's own numbers; it shares no code with methods, policies or referee.
Every second of the horizon is looked at in steps of a half: times have to be multiples of that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from optgap.models.placement import PlacementProblem

Place = tuple[int, tuple[int, ...]] | None


def optimum(problem: PlacementProblem, only: Sequence[Place] | None = None) -> float | None:
    """The least energy, J, of running every task, or the most GPU demand accepted on average.

    None where not all tasks can run. With `only`, of the one schedule that places tasks so.
    For ``energy`` and ``mean_accepted_gpu``.
    """
    assert problem.over_time is not None
    accepting = problem.objective.goal == "mean_accepted_gpu"
    begin, horizon = problem.over_time.begin_s, problem.over_time.horizon_s
    tasks = [problem.tasks.task_class(k) for k in range(len(problem.tasks))]
    lives = []
    for submit, duration in zip(problem.tasks.submit_s, problem.tasks.duration_s, strict=True):
        first = float(submit) - begin
        lives.append((first, min(first + float(duration), horizon)))
    steps = [0.5 * i for i in range(math.ceil(2 * horizon))]
    best: float | None = None

    def fits(places: list[Place], node: int) -> bool:
        here = [k for k, place in enumerate(places) if place is not None and place[0] == node]
        for now in steps:
            some = [k for k in here if lives[k][0] <= now < lives[k][1]]
            gpus = [0] * int(problem.cluster.gpus[node])
            for k in some:
                for g in places[k][1]:  # type: ignore[index]
                    gpus[g] += tasks[k].gpu_milli
            cpu = sum(tasks[k].cpu_milli for k in some)
            memory = sum(tasks[k].memory_mib for k in some)
            full = cpu > problem.cluster.cpu_milli[node] or max(gpus, default=0) > 1000
            if full or memory > problem.cluster.memory_mib[node]:
                return False
        return True

    def extend(places: list[Place]) -> None:
        nonlocal best
        k = len(places)
        if k == len(tasks):
            if accepting:
                gains = [t.demand_milli * (b - a) for t, (a, b) in zip(tasks, lives, strict=True)]
                value = sum(g for g, p in zip(gains, places, strict=True) if p) / horizon
                best = value if best is None else max(best, value)
            else:
                value = sum(0.5 * watts(places, now) for now in steps)
                best = value if best is None else min(best, value)
            return
        gang = problem.tasks.gang
        before = [places[i] for i in range(k) if gang[i] == gang[k]]
        for n in range(len(problem.cluster)):
            if any(place is None or place[0] == n for place in before):
                continue
            model = problem.cluster.models[n]
            if tasks[k].num_gpu and tasks[k].gpu_spec and model not in tasks[k].gpu_spec.split("|"):
                continue
            for gpus in itertools.combinations(
                range(int(problem.cluster.gpus[n])), tasks[k].num_gpu
            ):
                if only is not None and only[k] != (n, gpus):
                    continue
                more = [*places, (n, gpus)]
                if fits(more, n):
                    extend(more)
        if accepting and not any(before) and (only is None or only[k] is None):
            extend([*places, None])

    def watts(places: list[Place], now: float) -> float:
        total = 0.0
        for n in range(len(problem.cluster)):
            mine = [k for k, place in enumerate(places) if place is not None and place[0] == n]
            some = [k for k in mine if lives[k][0] <= now < lives[k][1]]
            capacity = int(problem.cluster.cpu_milli[n])
            total += cpu_watts(problem, capacity, sum(tasks[k].cpu_milli for k in some))
            busy = {g for k in some for g in places[k][1]}  # type: ignore[index]
            count, model = int(problem.cluster.gpus[n]), problem.cluster.models[n]
            if count:
                total += problem.power.gpu_full_w[model] * len(busy)
                total += problem.power.gpu_idle_w[model] * (count - len(busy))
        return total

    extend([])
    return best


def cpu_watts(problem: PlacementProblem, capacity_milli: int, used_milli: int) -> float:
    """Eq. 1, as printed or counted from cores."""
    cpu, free = problem.power.cpu, capacity_milli - used_milli
    size = 2000 * cpu.cores
    if problem.power.cpu_rule == "eq1":
        return cpu.full_w * math.ceil(used_milli / size) + cpu.idle_w * (free // size)
    cores = math.ceil(capacity_milli / 2000)
    packages = math.ceil(cores / cpu.cores)
    active = math.ceil((cores - free // 2000) / cpu.cores)
    return cpu.full_w * active + cpu.idle_w * (packages - active)
