"""The referee over time: one plain loop over all running tasks, sample by sample."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.consolidation.problem import ConsolidationProblem
from optgap.models.consolidation.referee import clocked, crowded, label, placed
from optgap.models.consolidation.solution import ConsolidationSolution
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.result import Evaluation, Violation

ALMOST = 1e-6
"""Seconds: times this close are the same."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What a schedule comes to.

    Parameters
    ----------
    end_s: (L,) when each task ends; infinite where it never does.
    energy_j, gpu_seconds, server_seconds: totals, static power of servers included.
    arrival_j: the part of `energy_j` up to the last arrival.
    floor_j: what the tasks that ran at each time would have needed at least, see `floor_power`.
    """

    end_s: FloatArray
    energy_j: float
    gpu_seconds: float
    server_seconds: float
    arrival_j: float
    floor_j: float


def check(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Violation]:
    """Every broken constraint, task by task and then over time."""
    broken: list[Violation] = []
    first: dict[int, float] = {}
    for a in solution.assignments:
        broken += placed(problem, a)
        if broken:
            continue
        task = problem.tasks[a.task]
        where = f"task {task.name}"
        if not math.isfinite(a.start_s) or a.start_s < task.submit_s - ALMOST:
            broken.append(Violation("start_s", where, a.start_s, task.submit_s))
        earlier = a.task in first
        if not problem.rules.waiting and not earlier and a.start_s > task.submit_s + ALMOST:
            broken.append(Violation("start without waiting", where, a.start_s, task.submit_s))
        first.setdefault(a.task, a.start_s)
    for clock in solution.clocks:
        if not 0 <= clock.gpu < len(problem.places):
            broken.append(Violation("GPU number", "frequencies_mhz", clock.gpu, 0))
        elif not math.isfinite(clock.time_s) or clock.time_s < 0:
            broken.append(Violation("time_s", label(problem, clock.gpu), clock.time_s, 0))
    return broken or _over_time(problem, solution)


def _over_time(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Violation]:
    """Memory, capacity and clocks after every change."""
    end = replay(problem, solution).end_s
    broken: list[Violation] = []
    events: list[tuple[float, int, int, int]] = []
    spans = _spans(solution, end)
    for k, (task, _, start, stop) in enumerate(spans):
        if math.isinf(stop) and math.isinf(float(end[task])):
            broken.append(Violation("a clock for its GPUs", f"task {task}", "never ends", "ends"))
        events += [(start, 1, k, task), (stop, 0, k, task)]
    clocks = [(c.time_s, 2, k, 0) for k, c in enumerate(solution.clocks)]
    residents: dict[int, list[int]] = defaultdict(list)
    mhz: dict[int, float] = {}
    touched: set[int] = set()
    ordered = sorted([*events, *clocks])
    for k, (time, what, index, task) in enumerate(ordered):
        if what == 2:
            clock = solution.clocks[index]
            mhz[clock.gpu] = clock.mhz
            touched.add(clock.gpu)
        else:
            for g in spans[index][1]:
                residents[g].append(task) if what else residents[g].remove(task)
                touched.add(g)
        last = k + 1 == len(ordered) or ordered[k + 1][0] > time + ALMOST
        if last:
            for g in sorted(touched):
                if residents[g]:
                    broken += crowded(problem, g, residents[g])
                    broken += clocked(problem, g, residents[g], mhz.get(g, 0.0))
            touched.clear()
        if len(broken) > 20:
            break
    return broken


Span = tuple[int, tuple[int, ...], float, float]


def _spans(solution: ConsolidationSolution, end: FloatArray) -> list[Span]:
    """(task, GPUs, from, to) of every stay."""
    by_task: dict[int, list[tuple[float, tuple[int, ...]]]] = defaultdict(list)
    for a in solution.assignments:
        by_task[a.task].append((a.start_s, a.gpus))
    spans: list[Span] = []
    for task, stays in by_task.items():
        final = float(end[task])
        for k, (start, gpus) in enumerate(stays):
            until = stays[k + 1][0] if k + 1 < len(stays) else final
            if start < min(until, final):
                spans.append((task, gpus, start, min(until, final)))
    return spans


@lru_cache(maxsize=1)  # `check` and `evaluate` ask for the same one in turn
def replay(problem: ConsolidationProblem, solution: ConsolidationSolution) -> Replay:
    """Run a schedule: where, when and at which clocks is given, how fast follows."""
    tasks = len(problem)
    order = sorted(
        [(a.start_s, 1, k) for k, a in enumerate(solution.assignments)]
        + [(c.time_s, 0, k) for k, c in enumerate(solution.clocks)]
    )
    event_time = np.array([t for t, _, _ in order])
    event_kind = np.array([kind for _, kind, _ in order], dtype=np.int64)
    event_index = np.array([k for _, _, k in order], dtype=np.int64)
    widest = int(problem.width.max())
    stays = np.full((len(solution.assignments), widest), -1, dtype=np.int64)
    who = np.zeros(len(solution.assignments), dtype=np.int64)
    for k, a in enumerate(solution.assignments):
        stays[k, : len(a.gpus)] = a.gpus
        who[k] = a.task
    clock_gpu = np.array([c.gpu for c in solution.clocks], dtype=np.int64)
    clock_mhz = np.array([c.mhz for c in solution.clocks], dtype=np.float64)
    kinds = range(len(problem.kinds))
    beta = np.array(
        [
            [problem.kinds[k].beta if t.beta is None else t.beta for t in problem.tasks]
            for k in kinds
        ]
    )
    line = [[problem.line(ell, k) for ell in range(tasks)] for k in kinds]
    end, totals = _replay(
        event_time,
        event_kind,
        event_index,
        stays,
        who,
        clock_gpu,
        clock_mhz,
        np.concatenate([task.util_percent for task in problem.tasks]),
        np.cumsum([0, *(task.util_percent.size for task in problem.tasks)]).astype(np.int64),
        np.array([task.duration_s for task in problem.tasks]),
        problem.gpu_kind,
        problem.gpu_server,
        np.array([kind.f_max_mhz for kind in problem.kinds]),
        beta,
        np.array([[x.static_w for x in row] for row in line]),
        np.array([[x.slope_w_per_mhz for x in row] for row in line]),
        np.array([server.static_w for server in problem.servers]),
        problem.period_s,
        problem.rules.contention,
        problem.tasks[-1].submit_s,
        _floors(problem),
        problem.memory.astype(np.float64),
        float(problem.gpu_memory.max()),
        _least_server_share(problem),
    )
    return Replay(end, *(float(x) for x in totals))


def _floors(problem: ConsolidationProblem) -> FloatArray:
    """(L,) the least a GPU draws that runs this task within its κ, W."""
    kinds = sorted(set(problem.gpu_kind.tolist()))
    return np.array(
        [
            min(problem.line(ell, k).watts(problem.floors_mhz[k][ell]) for k in kinds)
            for ell in range(len(problem))
        ]
    )


def _least_server_share(problem: ConsolidationProblem) -> float:
    """Static power per GPU of the thriftiest server, W."""
    return min(server.static_w / len(server.gpus) for server in problem.servers)


@compiled
def _replay(
    event_time: FloatArray,
    event_kind: IntArray,
    event_index: IntArray,
    stays: IntArray,
    who: IntArray,
    clock_gpu: IntArray,
    clock_mhz: FloatArray,
    series: FloatArray,
    offset: IntArray,
    duration: FloatArray,
    gpu_kind: IntArray,
    gpu_server: IntArray,
    f_max: FloatArray,
    beta: FloatArray,
    static: FloatArray,
    slope: FloatArray,
    server_w: FloatArray,
    period: float,
    exponent: float,
    last_arrival: float,
    floors: FloatArray,
    memory: FloatArray,
    largest: float,
    share: float,
) -> tuple[FloatArray, FloatArray]:
    """End of each task, and energy, GPU-s, server-s, energy up to the last arrival, floor."""
    tasks, gpus = len(duration), len(gpu_kind)
    end = np.full(tasks, np.inf)
    totals = np.zeros(5)
    stay = np.full(tasks, -1, dtype=np.int64)
    progress = np.zeros(tasks)
    clock = np.zeros(gpus)
    util = np.zeros(gpus)
    watts = np.zeros(gpus)
    residents = np.zeros(gpus, dtype=np.int64)
    servers = np.zeros(len(server_w), dtype=np.int64)
    active = np.zeros(tasks, dtype=np.int64)
    rate = np.zeros(tasks)
    count, event, now = 0, 0, 0.0
    while True:
        while event < len(event_time) and event_time[event] <= now + 1e-12:
            index = event_index[event]
            if event_kind[event] == 0:
                clock[clock_gpu[index]] = clock_mhz[index]
            else:
                task = who[index]
                if end[task] == np.inf:
                    if stay[task] < 0:
                        active[count] = task
                        count += 1
                    stay[task] = index
            event += 1
        upcoming = event_time[event] if event < len(event_time) else np.inf
        if count == 0:
            if upcoming == np.inf:
                return end, totals
            now = upcoming
            continue
        for k in range(count):
            task = active[k]
            for m in range(stays.shape[1]):
                g = stays[stay[task], m]
                if g >= 0:
                    util[g] = 0.0
                    watts[g] = 0.0
                    residents[g] = 0
                    servers[gpu_server[g]] = 0
        for k in range(count):
            task = active[k]
            index = min(offset[task + 1] - offset[task] - 1, int(progress[task] / period + 1e-7))
            now_util = series[offset[task] + index]
            for m in range(stays.shape[1]):
                g = stays[stay[task], m]
                if g >= 0:
                    util[g] += now_util
                    kind = gpu_kind[g]
                    own = static[kind, task] + slope[kind, task] * clock[g]
                    watts[g] = max(watts[g], own)
        power, awake, woken, floor_top, held, wide = 0.0, 0, 0, 0.0, 0.0, 0
        least = np.inf
        step = upcoming - now
        for k in range(count):
            task = active[k]
            speed = np.inf
            width = 0
            for m in range(stays.shape[1]):
                g = stays[stay[task], m]
                if g < 0:
                    continue
                width += 1
                kind = gpu_kind[g]
                slow = max(1.0, util[g] / 100.0) ** exponent
                own = 0.0
                if clock[g] > 0:
                    own = (clock[g] / f_max[kind]) ** beta[kind, task] / slow
                speed = min(speed, own)
                if residents[g] == 0:
                    residents[g] = 1
                    power += watts[g]
                    awake += 1
                    i = gpu_server[g]
                    if servers[i] == 0:
                        servers[i] = 1
                        power += server_w[i]
                        woken += 1
            rate[task] = speed
            held += memory[task] * width
            wide = max(wide, width)
            least = min(least, floors[task])
            floor_top = max(floor_top, floors[task] * width)
            if speed > 0:
                size = offset[task + 1] - offset[task]
                index = int(progress[task] / period + 1e-7)
                goal = duration[task]
                if index < size - 1:
                    goal = min(goal, (index + 1) * period)
                step = min(step, max(0.0, goal - progress[task]) / speed)
        if step == np.inf:
            return end, totals  # nothing runs any more, and nothing will happen
        needed = max(np.ceil(held / largest - 1e-9), float(wide))
        floor = max(floor_top, needed * least) + needed * share
        totals[0] += power * step
        totals[1] += awake * step
        totals[2] += woken * step
        totals[3] += power * max(0.0, min(step, last_arrival - now))
        totals[4] += floor * step
        kept = 0
        now += step
        for k in range(count):
            task = active[k]
            progress[task] += rate[task] * step
            if progress[task] >= duration[task] - 1e-7 * period:
                end[task] = now
            else:
                active[kept] = task
                kept += 1
        count = kept


def evaluate(problem: ConsolidationProblem, solution: ConsolidationSolution) -> Evaluation:
    """Energy until the last task ends, J, and what a reader of the paper asks for."""
    ran = replay(problem, solution)
    start: dict[int, float] = {}
    for a in solution.assignments:
        start[a.task] = min(a.start_s, start.get(a.task, math.inf))
    first = min((problem.tasks[ell].submit_s for ell in start), default=0.0)
    makespan = max((float(ran.end_s[ell]) for ell in start), default=0.0) - first
    waits = [s - problem.tasks[ell].submit_s for ell, s in start.items()]
    stretch = []
    broken = 0
    spent = []
    for ell, s in start.items():
        task = problem.tasks[ell]
        lasted = float(ran.end_s[ell]) - s
        spent.append(float(ran.end_s[ell]) - task.submit_s)
        stretch.append(lasted / task.duration_s)
        broken += lasted > task.kappa * task.duration_s * (1 + 1e-9) + ALMOST
    span = max(makespan, 1e-300)
    count = max(1, len(start))
    window = max(problem.tasks[-1].submit_s - first, 1e-300)
    metrics: dict[str, float | int] = {
        "energy_j": ran.energy_j,
        "average_power_w": ran.energy_j / span,
        "arrival_power_w": ran.arrival_j / window if ran.arrival_j else 0.0,
        "floor_energy_j": ran.floor_j,
        "average_gpus": ran.gpu_seconds / span,
        "average_servers": ran.server_seconds / span,
        "makespan_s": makespan,
        "mean_jct_s": math.fsum(spent) / count,
        "mean_stretch": math.fsum(stretch) / count,
        "sla_violations": broken,
        "mean_wait_s": math.fsum(waits) / count,
        "tasks_run": len(start),
        "moves": len(solution.assignments) - len(start),
    }
    return Evaluation(ran.energy_j, metrics)
