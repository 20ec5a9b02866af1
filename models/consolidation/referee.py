"""The referee of tasks that are all present at once; shares nothing with method or policy."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from optgap.models.consolidation.cluster import EQUAL_MHZ
from optgap.models.consolidation.solution import Assignment, ConsolidationSolution
from optgap.models.consolidation.tasks import BYTES, MICRO
from optgap.models.result import Evaluation, Violation
from optgap.models.times import slack_s

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem


def check(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Violation]:
    """Return every broken constraint of (7)-(14), capacity rows included."""
    broken: list[Violation] = []
    seen: set[int] = set()
    for a in solution.assignments:
        broken += placed(problem, a)
        if a.task in seen:
            broken.append(Violation("places per task", f"task {a.task}", 2, 1))
        seen.add(a.task)
        if a.start_s:
            broken.append(Violation("start_s", f"task {a.task}", a.start_s, 0))
    gpus = {clock.gpu for clock in solution.clocks}
    if len(gpus) != len(solution.clocks):
        broken.append(Violation("clocks per GPU", "frequencies_mhz", len(solution.clocks), 1))
    for g in sorted(gpus):
        if not 0 <= g < len(problem.places):
            limit = len(problem.places) - 1
            broken.append(Violation("GPU number", "frequencies_mhz", g, limit))
    return broken or _shared(problem, solution)


def placed(problem: ConsolidationProblem, a: Assignment) -> list[Violation]:
    """Return what is wrong with one assignment, whoever else runs."""
    if not 0 <= a.task < len(problem):
        return [Violation("task number", f"task {a.task}", a.task, len(problem) - 1)]
    task = problem.tasks[a.task]
    where = f"task {task.name}"
    broken = []
    for g in a.gpus:
        if not 0 <= g < len(problem.places):
            return [Violation("GPU number", where, g, len(problem.places) - 1)]
    if len(set(a.gpus)) != task.gpus or len(a.gpus) != task.gpus:
        broken.append(Violation("different GPUs (7)", where, len(set(a.gpus)), task.gpus))
    servers = {problem.places[g][0] for g in a.gpus}
    if problem.rules.gang == "server" and len(servers) > 1:
        broken.append(Violation("servers of a task", where, len(servers), 1))
    return broken


def _shared(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Violation]:
    """Memory, capacity rows and clocks of every GPU."""
    residents: dict[int, list[int]] = defaultdict(list)
    for a in solution.assignments:
        for g in a.gpus:
            residents[g].append(a.task)
    clocks = {clock.gpu: clock.mhz for clock in solution.clocks}
    broken: list[Violation] = []
    for g in sorted(clocks.keys() - residents.keys()):
        broken.append(Violation("clock of a GPU without tasks", label(problem, g), clocks[g], 0))
    for g, tasks in sorted(residents.items()):
        broken += crowded(problem, g, tasks)
        if problem.rules.capacity == "slot":
            broken += _slots(problem, g, tasks)
        if g not in clocks:
            broken.append(Violation("clock (13)", label(problem, g), "none", "one"))
            continue
        broken += clocked(problem, g, tasks, clocks[g])
    return broken


def label(problem: ConsolidationProblem, gpu: int) -> str:
    """Return the name of a GPU for a message."""
    server, index = problem.places[gpu]
    return f"server {server}, GPU {index}"


def crowded(problem: ConsolidationProblem, gpu: int, tasks: list[int]) -> list[Violation]:
    """Memory (8), and the capacity rows that do not depend on time."""
    broken = []
    kind = problem.kinds[int(problem.gpu_kind[gpu])]
    held = sum(round(problem.tasks[ell].memory_gb * BYTES) for ell in tasks)
    if held > round(kind.memory_gb * BYTES):
        where = label(problem, gpu)
        broken.append(Violation("memory in GB (8)", where, held / BYTES, kind.memory_gb))
    capacity = problem.rules.capacity
    if capacity in ("mean", "peak"):
        total = 0
        for ell in tasks:
            samples = [round(u * MICRO) for u in problem.tasks[ell].util_percent.tolist()]
            total += max(samples) if capacity == "peak" else round(sum(samples) / len(samples))
        if total > round(problem.rules.limit_percent * MICRO):
            name = f"{capacity} utilisation in %"
            found = total / MICRO
            broken.append(Violation(name, label(problem, gpu), found, problem.rules.limit_percent))
    return broken


def _slots(problem: ConsolidationProblem, gpu: int, tasks: list[int]) -> list[Violation]:
    """Return Σ u[t] ≤ U, the worst sample told."""
    worst, at = 0, 0
    for t in range(max(problem.tasks[ell].util_percent.size for ell in tasks)):
        total = 0
        for ell in tasks:
            task = problem.tasks[ell]
            if t * problem.period_s < task.duration_s - slack_s(task.duration_s):
                k = min(t, task.util_percent.size - 1)
                total += round(float(task.util_percent[k]) * MICRO)
        if total > worst:
            worst, at = total, t
    if worst <= round(problem.rules.limit_percent * MICRO):
        return []
    where = f"{label(problem, gpu)}, sample {at}"
    return [Violation("utilisation in %", where, worst / MICRO, problem.rules.limit_percent)]


def clocked(
    problem: ConsolidationProblem, gpu: int, tasks: list[int], mhz: float
) -> list[Violation]:
    """Return violations of a GPU's own frequencies (13) and of its tasks' κ (14)."""
    broken = []
    kind = problem.kinds[int(problem.gpu_kind[gpu])]
    where = label(problem, gpu)
    if not kind.offers(mhz):
        return [wrong_clock(problem, gpu, mhz)]
    for ell in tasks:
        task = problem.tasks[ell]
        beta = kind.beta if task.beta is None else task.beta
        stretch = (kind.f_max_mhz / (mhz + EQUAL_MHZ)) ** beta
        if stretch > task.kappa * (1 + 1e-9) and mhz < kind.f_max_mhz - EQUAL_MHZ:
            broken.append(Violation(f"κ of {task.name} (14)", where, stretch, task.kappa))
    return broken


def wrong_clock(problem: ConsolidationProblem, gpu: int, mhz: float) -> Violation:
    """Return the violation of a clock that the GPU does not have."""
    kind = problem.kinds[int(problem.gpu_kind[gpu])]
    limit = f"{kind.f_min_mhz:g} to {kind.f_max_mhz:g}"
    return Violation("clock in MHz (13)", label(problem, gpu), mhz, limit)


def evaluate(problem: ConsolidationProblem, solution: ConsolidationSolution) -> Evaluation:
    """Power of all awake servers (6), and what it is made of."""
    residents: dict[int, list[int]] = defaultdict(list)
    for a in solution.assignments:
        for g in a.gpus:
            residents[g].append(a.task)
    clocks = {clock.gpu: clock.mhz for clock in solution.clocks}
    gpu_w = []
    for g, tasks in residents.items():
        kind = problem.kinds[int(problem.gpu_kind[g])]
        lines = [problem.tasks[ell].power or kind.power for ell in tasks]
        gpu_w.append(max(x.static_w + x.slope_w_per_mhz * clocks[g] for x in lines))
    awake = {problem.places[g][0] for g in residents}
    static = math.fsum(problem.servers[i].static_w for i in awake)
    power = math.fsum([*gpu_w, static])
    used = [clocks[g] for g in residents]
    shares = sum(len(tasks) for tasks in residents.values())
    metrics: dict[str, float | int] = {
        "power_w": power,
        "gpu_power_w": math.fsum(gpu_w),
        "server_power_w": static,
        "gpus": len(residents),
        "servers": len(awake),
        "tasks_run": len(solution),
        "tasks_per_gpu": shares / len(residents) if residents else 0.0,
        "mean_clock_mhz": math.fsum(used) / len(used) if used else 0.0,
    }
    return Evaluation(power, metrics)
