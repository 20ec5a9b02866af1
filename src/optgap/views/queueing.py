"""Picture of a cluster's schedule: the GPUs of each job, and the number of waiting jobs."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.referee import queue_length
from optgap.models.times import slack_s
from optgap.plotting.figures import (
    COLOURS,
    EDGE,
    FILLS,
    IDLE,
    heading,
    legend_below,
    new_figure,
    plain,
    titled,
)
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = COLOURS[0]
NAMED = 40
"""Largest number of jobs that are named and outlined."""
MOST_ROWS = 256
"""Largest number of GPUs in a Gantt chart."""


def draw(problem: QueueingProblem, solution: QueueingSolution, by: str = "") -> Figure:
    """Draw the GPUs over time, if few enough, above the number of waiting jobs."""
    charted = problem.gpus <= MOST_ROWS and problem.placement == "node"
    height = min(7.0, 1.6 + 0.14 * problem.gpus) if charted else 0.0
    figure = new_figure(10, height + 2.2)
    if not charted:
        ax = queue(problem, solution, figure.subplots())
        titled(ax, heading(problem.family, problem.summary, by), _found(problem, solution))
        return figure
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[height, 1.8])
    gantt(problem, solution, top, by)
    top.set_xlabel("")
    queue(problem, solution, bottom)
    return figure


def gantt(problem: QueueingProblem, solution: QueueingSolution, ax: Axes, by: str = "") -> Axes:
    """Draw which job holds which GPUs when, one line per GPU; grey is idle.

    The GPUs of a node are alike, so a job is drawn on the lowest free ones. Each GPU count has a
    colour.
    """
    jobs, g = problem.jobs, problem.gpus_per_node
    origin = float(jobs.arrival_s[0])
    makespan = problem.evaluate(solution).metrics.get("makespan_s", 0.0)
    lasts = float(makespan) / 3600  # none where no job starts
    ax.barh(np.arange(problem.gpus), lasts, height=1.0, color=IDLE, linewidth=0)
    sizes = sorted(set(jobs.gpus.tolist()))
    few = len(jobs) <= NAMED
    for job, rows in _rows(problem, solution):
        start = (float(solution.start_s[job]) - origin) / 3600
        hours = float(jobs.duration_s[job]) / 3600
        colour = FILLS[sizes.index(int(jobs.gpus[job])) % len(FILLS)]
        for low, high in _blocks(rows):
            ax.broken_barh(
                [(start, hours)],
                (low - 0.5, high - low + 1),
                facecolor=colour,
                edgecolor=EDGE,
                linewidth=0.6 if few else 0.15,
            )
            if few:
                where = (start + hours / 2, (low + high) / 2)
                ax.annotate(jobs.names[job], where, ha="center", va="center", fontsize=7)
    for node in range(1, problem.nodes):
        ax.axhline(node * g - 0.5, color="white", linewidth=1.5)
    ticks = [node * g + g / 2 - 0.5 for node in range(problem.nodes)]
    ax.set_yticks(ticks, [f"node {node}" for node in range(problem.nodes)])
    ax.set_ylim(problem.gpus - 0.4, -0.6)
    titled(ax, heading(problem.family, problem.summary, by), _found(problem, solution))
    for k, n in enumerate(sizes):
        ax.bar(0, 0, color=FILLS[k % len(FILLS)], label=f"{n} GPUs" if n > 1 else "1 GPU")
    legend_below(ax, len(sizes))
    ax.set_xlim(0, lasts * 1.005 or 1.0)
    ax.set_xlabel("time (h)")
    plain(ax, "x")
    return ax


def _found(problem: QueueingProblem, solution: QueueingSolution) -> str:
    found = problem.evaluate(solution).metrics
    if not found.get("makespan_s"):
        return "no job starts"
    words = f"mean wait {number(found['mean_wait_s'])} s, makespan {number(found['makespan_s'])} s"
    return f"{words}, GPUs in use {100 * float(found['utilisation']):.1f} % of the time"


def queue(problem: QueueingProblem, solution: QueueingSolution, ax: Axes) -> Axes:
    """Draw the number of waiting jobs over time."""
    from matplotlib.ticker import MaxNLocator

    time, waiting = queue_length(problem, solution)
    hours = (time - float(problem.jobs.arrival_s[0])) / 3600
    ax.fill_between(hours, waiting, step="post", color=LINE, alpha=0.25, linewidth=0)
    ax.step(hours, waiting, where="post", color=LINE, linewidth=1)
    ax.set_ylim(0, max(1, int(waiting.max())) * 1.05)
    ax.set_xlabel("time (h)")
    ax.set_ylabel("jobs waiting")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    plain(ax, "both")
    return ax


def _rows(problem: QueueingProblem, solution: QueueingSolution) -> list[tuple[int, list[int]]]:
    """Return (job, rows) pairs, with GPUs as rows numbered over all nodes."""
    g = problem.gpus_per_node
    free = [list(range(g)) for _ in range(problem.nodes)]
    started = solution.started
    running: list[tuple[float, int, list[tuple[int, int]]]] = []
    found = []
    for k in started[np.argsort(solution.start_s[started], kind="stable")].tolist():
        start = float(solution.start_s[k])
        while running and running[0][0] <= start + slack_s(start):
            for node, gpu in heapq.heappop(running)[2]:
                heapq.heappush(free[node], gpu)
        taken = [
            (node, heapq.heappop(free[node]))
            for node, gpus in solution.nodes_of(k)
            for _ in range(gpus)
        ]
        heapq.heappush(running, (float(solution.end_s[k]), k, taken))
        found.append((k, [node * g + gpu for node, gpu in taken]))
    return found


def _blocks(rows: list[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of neighbouring rows."""
    blocks: list[tuple[int, int]] = []
    for row in sorted(rows):
        if blocks and blocks[-1][1] == row - 1:
            blocks[-1] = (blocks[-1][0], row)
        else:
            blocks.append((row, row))
    return blocks
