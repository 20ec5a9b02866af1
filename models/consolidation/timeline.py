"""The referee over time: what a schedule comes to, and every rule that it breaks."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.compiled import floats
from optgap.models.consolidation.referee import clocked, crowded, label, placed, wrong_clock
from optgap.models.consolidation.solution import Assignment, ConsolidationSolution
from optgap.models.consolidation.tasks import LATEST_S, FloatArray, IntArray
from optgap.models.consolidation.timeline_kernels import Given, empty, run
from optgap.models.result import Evaluation, Violation
from optgap.models.times import freed_s, slack_s

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem

END, CLOCK, START = range(3)


@dataclass(frozen=True, eq=False)
class Replay:
    """Ends and totals of a schedule.

    Parameters
    ----------
    end_s: (L,) when each task ends; infinite where it never does.
    energy_j, gpu_seconds, server_seconds: totals, static power of servers included.
    """

    end_s: FloatArray
    energy_j: float
    gpu_seconds: float
    server_seconds: float


def check(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Violation]:
    """Return every violated constraint: clock by clock, task by task, and then over time."""
    broken = _set_clocks(problem, solution)
    latest = problem.epoch_s + LATEST_S
    last: dict[int, float] = {}
    for a in _in_order(solution):
        broken += placed(problem, a)
        if broken:
            continue
        task = problem.tasks[a.task]
        where, slack = f"task {task.name}", slack_s(task.submit_s)
        if not task.submit_s - slack <= a.start_s <= latest:
            limit = latest if a.start_s > latest else task.submit_s
            broken.append(Violation("start_s", where, a.start_s, limit))
        earlier = last.get(a.task)
        if earlier is None and not problem.rules.waiting and a.start_s > task.submit_s + slack:
            broken.append(Violation("start without waiting", where, a.start_s, task.submit_s))
        if earlier is not None and not problem.rules.migration:
            broken.append(Violation("places of a task that may not move", where, 2, 1))
        if a.start_s == earlier:
            broken.append(Violation("a stay of some length", where, 0, "above 0 s"))
        last[a.task] = a.start_s
    return broken or _over_time(problem, solution)


def _set_clocks(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Violation]:
    """Return what is wrong with each clock by itself, whatever runs when it is set.

    A replay at other clocks means nothing: at a billion MHz a task lasts no time at all, and
    nobody would look at who shares its GPU.
    """
    broken: list[Violation] = []
    epoch_s = problem.epoch_s  # a look at all tasks
    for clock in solution.clocks:
        if not 0 <= clock.gpu < len(problem.places):
            broken.append(Violation("GPU number", "frequencies_mhz", clock.gpu, 0))
            continue
        kind, where = problem.kinds[int(problem.gpu_kind[clock.gpu])], label(problem, clock.gpu)
        if not abs(clock.time_s - epoch_s) <= LATEST_S:
            limit = f"within {LATEST_S:g} s of the first event"
            broken.append(Violation("time_s", where, clock.time_s, limit))
        if not kind.offers(clock.mhz):
            broken.append(wrong_clock(problem, clock.gpu, clock.mhz))
    return broken


def _in_order(solution: ConsolidationSolution) -> list[Assignment]:
    """Return the assignments by time; a solution that is built by hand may have any order."""
    return sorted(solution.assignments, key=lambda a: (a.start_s, a.task))


def _over_time(problem: ConsolidationProblem, solution: ConsolidationSolution) -> list[Violation]:
    """Return violations of memory, capacity and clocks after every change.

    Of what happens at the same time ends come first, then clocks, then starts.
    """
    end = replay(problem, solution).end_s
    broken: list[Violation] = []
    events: list[tuple[float, int, int, int]] = []
    stays = spans(solution, end)
    for k, (task, _, start, stop) in enumerate(stays):
        where = f"task {problem.tasks[task].name}"
        if not start < stop:  # its GPUs would not be looked at
            broken.append(Violation("a stay of some length", where, stop - start, "above 0 s"))
        elif math.isinf(stop):
            broken.append(Violation("a clock for its GPUs", where, "never ends", "ends"))
            events.append((start, START, k, task))
        else:
            events += [(start, START, k, task), (freed_s(start, stop), END, k, task)]
    clocks = [
        (c.time_s - slack_s(c.time_s) / 2, CLOCK, k, 0) for k, c in enumerate(solution.clocks)
    ]
    residents: dict[int, list[int]] = defaultdict(list)
    mhz: dict[int, float] = {}
    touched: set[int] = set()
    ordered = sorted([*events, *clocks])
    for k, (time, what, index, task) in enumerate(ordered):
        if what == CLOCK:
            clock = solution.clocks[index]
            mhz[clock.gpu] = clock.mhz
            touched.add(clock.gpu)
        else:
            for g in stays[index][1]:
                residents[g].append(task) if what == START else residents[g].remove(task)
                touched.add(g)
        last = k + 1 == len(ordered) or ordered[k + 1][0] > time
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


def spans(solution: ConsolidationSolution, end: FloatArray) -> list[Span]:
    """Return (task, GPUs, from, to) of every stay, but not a move at the task's last instant.

    Nothing runs in such a stay; one that begins later than that is a stay of no length.
    """
    by_task: dict[int, list[tuple[float, tuple[int, ...]]]] = defaultdict(list)
    for a in _in_order(solution):
        by_task[a.task].append((a.start_s, a.gpus))
    found: list[Span] = []
    for task, stays in by_task.items():
        final = float(end[task])
        for k, (start, gpus) in enumerate(stays):
            until = stays[k + 1][0] if k + 1 < len(stays) else final
            if k == 0 or start < final or start > final + slack_s(final):
                found.append((task, gpus, start, min(until, final)))
    return found


@lru_cache(maxsize=1)  # `check` and `evaluate` ask for the same one in turn
def replay(problem: ConsolidationProblem, solution: ConsolidationSolution) -> Replay:
    """Run a schedule: where, when and at which clocks is given, how fast follows.

    Time counts from the first submission: what adds up over a long run must not round.
    """
    epoch_s = problem.epoch_s
    order = sorted(
        [(a.start_s - epoch_s, 1, k) for k, a in enumerate(solution.assignments)]
        + [(c.time_s - epoch_s, 0, k) for k, c in enumerate(solution.clocks)]
    )
    widest = int(problem.width.max())
    stays = np.full((len(solution.assignments), widest), -1, dtype=np.int64)
    who = np.zeros(len(solution.assignments), dtype=np.int64)
    for k, a in enumerate(solution.assignments):
        stays[k, : len(a.gpus)] = a.gpus
        who[k] = a.task
    given = _given(problem, stays, who)
    held = empty(len(problem), len(problem.places), len(problem.servers))
    clocks = [None if kind else solution.clocks[k] for _, kind, k in order]
    end, totals = run(
        given,
        held,
        np.array([t for t, _, _ in order], dtype=np.float64),
        np.array([-1 if c is None else c.gpu for c in clocks], dtype=np.int64),
        np.array([0.0 if c is None else c.mhz for c in clocks], dtype=np.float64),
        np.array([k if kind else -1 for _, kind, k in order], dtype=np.int64),
    )
    return Replay(end + epoch_s, *(float(x) for x in totals))


def _given(problem: ConsolidationProblem, stays: IntArray, who: IntArray) -> Given:
    """Return the problem as arrays."""
    kinds, tasks = problem.kinds, problem.tasks
    line = [[problem.line(ell, k) for ell in range(len(tasks))] for k in range(len(kinds))]
    return Given(
        stays=stays,
        who=who,
        series=floats(np.concatenate([task.util_percent for task in tasks])),
        offset=np.cumsum([0, *(task.util_percent.size for task in tasks)]).astype(np.int64),
        duration=floats([task.duration_s for task in tasks]),
        gpu_kind=problem.gpu_kind,
        gpu_server=problem.gpu_server,
        f_max=floats([kind.f_max_mhz for kind in kinds]),
        beta=floats([[k.beta if t.beta is None else t.beta for t in tasks] for k in kinds]),
        static=floats([[x.static_w for x in row] for row in line]),
        slope=floats([[x.slope_w_per_mhz for x in row] for row in line]),
        server_w=floats([server.static_w for server in problem.servers]),
        period=float(problem.period_s),
        exponent=float(problem.rules.contention),
        same_s=slack_s(problem.epoch_s),
    )


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
        broken += bool(lasted > task.kappa * task.duration_s + slack_s(float(ran.end_s[ell])))
    span = max(makespan, 1e-300)
    count = max(1, len(start))
    metrics: dict[str, float | int] = {
        "energy_j": ran.energy_j,
        "average_power_w": ran.energy_j / span,
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
