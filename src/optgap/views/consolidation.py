"""Picture of a placement: a map of GPUs, or active GPUs and power over time."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.consolidation import ConsolidationProblem, ConsolidationSolution
from optgap.models.consolidation.timeline import Span, replay, spans
from optgap.models.times import from_first_event
from optgap.plotting.figures import (
    EDGE,
    FILLS,
    GREY,
    IDLE,
    heading,
    new_figure,
    plain,
    titled,
    twin_steps,
)
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DRAWN = 64
"""Largest number of GPUs in a map; the title counts the rest."""


def draw(problem: ConsolidationProblem, solution: ConsolidationSolution, by: str = "") -> Figure:
    """Draw the tasks on each active GPU, or over time the active GPUs and their power."""
    problem, solution = from_first_event(problem, solution)
    if problem.objective.goal == "energy":
        figure = new_figure(10.0, 4.6)
        timeline(problem, solution, figure.subplots(), by)
        return figure
    used = min(MOST_DRAWN, len(solution.clocks))
    figure = new_figure(10.0, 1.6 + 0.26 * max(4, used))
    memory_map(problem, solution, figure.subplots(), by)
    return figure


def memory_map(
    problem: ConsolidationProblem, solution: ConsolidationSolution, ax: Axes, by: str = ""
) -> Axes:
    """Draw a bar per active GPU: its tasks by memory, beside it clock and sum of utilisations."""
    residents: dict[int, list[int]] = defaultdict(list)
    for a in solution.assignments:
        for g in a.gpus:
            residents[g].append(a.task)
    clocks = {c.gpu: c.mhz for c in solution.clocks}
    gpus = sorted(residents)[:MOST_DRAWN]
    most = max(problem.kinds[k].memory_gb for k in set(problem.gpu_kind[gpus or [0]].tolist()))
    for row, g in enumerate(gpus):
        kind = problem.kinds[int(problem.gpu_kind[g])]
        ax.barh(row, kind.memory_gb, height=0.86, color=IDLE, linewidth=0)
        left = 0.0
        for ell in sorted(residents[g], key=lambda ell: -problem.tasks[ell].memory_gb):
            task = problem.tasks[ell]
            colour = FILLS[ell % len(FILLS)]
            ax.barh(
                row, task.memory_gb, left=left, height=0.86, color=colour, edgecolor=EDGE,
                linewidth=0.5,
            )  # fmt: skip
            if task.memory_gb > 0.012 * most * len(task.name):
                ax.text(
                    left + task.memory_gb / 2, row, task.name, ha="center", va="center", fontsize=6
                )
            left += task.memory_gb
        means = sum(float(problem.tasks[ell].util_percent.mean()) for ell in residents[g])
        words = f"{clocks[g]:.0f} MHz, {means:.0f} %"
        ax.text(most * 1.01, row, words, va="center", fontsize=6.5, color=GREY)
    names = [f"{problem.places[g][0]}.{problem.places[g][1]}" for g in gpus]
    ax.set_yticks(range(len(gpus)), names, fontsize=6.5)
    ax.set_ylim(len(gpus) - 0.4, -0.6)
    ax.set_xlim(0, most * 1.14)
    ax.set_xticks([tick for tick in ax.get_xticks() if tick <= most])  # no grid through the words
    ax.set_xlabel("memory held (GB); beside it clock and sum of mean utilisations")
    ax.set_ylabel("server.GPU")
    found = problem.evaluate(solution)
    words = f"{number(found.objective)} W, {found.metrics['gpus']} GPUs in "
    words += f"{found.metrics['servers']} servers active"
    if len(residents) > MOST_DRAWN:
        words += f", the first {MOST_DRAWN} drawn"
    titled(ax, heading(problem.family, problem.summary, by), words)
    plain(ax, "x")
    return ax


def timeline(
    problem: ConsolidationProblem, solution: ConsolidationSolution, ax: Axes, by: str = ""
) -> Axes:
    """Draw the active GPUs over time, and against the right axis power, servers included."""
    end = replay(problem, solution).end_s
    times, counts, watts = _levels(problem, solution, spans(solution, end))
    hours = np.array(times) / 3600
    unit, scale = ("kW", 1000.0) if max(watts) > 2000 else ("W", 1.0)
    twin_steps(
        ax, hours, counts, np.array(watts) / scale, labels=("GPUs active", f"power ({unit})")
    )
    ax.set_xlabel("time (h)")
    ax.set_xlim(0, float(hours[-1]) or 1.0)
    found = problem.evaluate(solution)
    words = f"{number(found.objective)} J, {number(float(found.metrics['average_power_w']))} W"
    words += f" and {number(float(found.metrics['average_gpus']))} GPUs on average"
    titled(ax, heading(problem.family, problem.summary, by), words)
    return ax


def _levels(
    problem: ConsolidationProblem,
    solution: ConsolidationSolution,
    stays: list[Span],
) -> tuple[list[float], list[int], list[float]]:
    """Return the active GPUs and the power after each change, from nothing at 0 s on."""
    events = [(c.time_s, 0, c.gpu, c.mhz) for c in solution.clocks]
    for task, gpus, start, until in stays:
        if start < until:
            events += [(start, 1, g, task) for g in gpus] + [(until, -1, g, task) for g in gpus]
    residents: dict[int, list[int]] = defaultdict(list)
    mhz: dict[int, float] = defaultdict(float)
    drawn: dict[int, float] = {}
    times, counts, watts = [0.0], [0], [0.0]
    for time, same in groupby(sorted(events), key=itemgetter(0)):
        for _, sign, g, what in same:
            if sign == 0:
                mhz[g] = what
            else:
                (residents[g].append if sign > 0 else residents[g].remove)(int(what))
            drawn.pop(g, None)
            if residents[g]:
                drawn[g] = problem.watts(int(problem.gpu_kind[g]), residents[g], mhz[g])
        awake = {problem.places[g][0] for g in drawn}
        times.append(time)
        counts.append(len(drawn))
        watts.append(sum(drawn.values()) + sum(problem.servers[i].static_w for i in awake))
    return times, counts, watts
