"""Picture of a schedule: GPUs and power over time, and for a few jobs a row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind
from optgap.models.elastic.referee import powers, step_function
from optgap.models.times import TOLERANCE_S, from_first_event
from optgap.plotting.figures import COLOURS, GREY, heading, legend_below, new_figure, plain, titled
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 60
"""Largest number of jobs with a row each."""
HOUR = 3600.0
KINDS = {Kind.RESTART: "#444444", Kind.PROFILE: COLOURS[4], Kind.PRERUN: "#BBBBBB"}

MEANINGS = {Kind.RESTART: "restart", Kind.PROFILE: "profiling", Kind.PRERUN: "pre-run"}


def draw(problem: ElasticProblem, solution: ElasticSolution, by: str = "") -> Figure:
    """Draw jobs, GPUs in use and power over time, one below the other."""
    problem, solution = from_first_event(problem, solution)
    rows = len(problem) <= MOST_BARS
    heights = [max(2.0, 0.13 * len(problem)), 2.0, 2.0] if rows else [2.4, 2.4]
    figure = new_figure(8.5, sum(heights) + 0.8)
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    if rows:
        _jobs(problem, solution, axes[0])
    _gpus(problem, solution, axes[-2])
    _power(problem, solution, axes[-1])
    axes[-1].set_xlabel("time (h)")
    found = problem.evaluate(solution)
    words = f"mean completion time {number(found.objective)} s"
    words += f", energy {number(float(found.metrics['energy_j']) / 1e6)} MJ"
    titled(axes[0], heading(problem.family, problem.summary, by), words)
    legend_below(axes[0], 4)
    return figure


def _jobs(problem: ElasticProblem, solution: ElasticSolution, ax: Axes) -> None:
    """Draw a row per job, darker at higher clocks and thicker with more GPUs."""
    from matplotlib import colormaps

    shades = colormaps["viridis_r"]
    clocks = problem.frequencies_mhz
    span = max(1.0, float(clocks[-1] - clocks[0]))
    most = float(np.log2(2 * problem.counts[-1]))
    for s in range(len(solution)):
        kind = Kind(int(solution.kind[s]))
        j, n = int(solution.job[s]), int(solution.gpus[s])
        if kind is Kind.RUN:
            colour: Any = shades(0.1 + 0.9 * (clocks[solution.frequency[s]] - clocks[0]) / span)
        else:
            colour = KINDS[kind]
        height = 0.25 + 0.7 * np.log2(2 * n) / most
        start, width = solution.start_s[s] / HOUR, (solution.end_s - solution.start_s)[s] / HOUR
        ax.broken_barh([(start, width)], (j - height / 2, height), color=colour, linewidth=0)
    for j, t in enumerate(problem.jobs.submit_s.tolist()):
        ax.plot([t / HOUR] * 2, [j - 0.45, j + 0.45], color=GREY, linewidth=0.8)
    ax.set_ylim(len(problem) - 0.3, -0.7)
    ax.set_ylabel("job (thick: many GPUs)")
    for colour, meaning in (
        (shades(1.0), f"run at {clocks[-1]:g} MHz"),
        (shades(0.1), f"run at {clocks[0]:g} MHz"),
        *((KINDS[kind], meaning) for kind, meaning in MEANINGS.items() if kind in solution.kind),
    ):
        ax.plot([], [], color=colour, linewidth=7, label=meaning)
    ax.plot([], [], color=GREY, linewidth=0.8, label="submission")
    plain(ax, "x")


def _steps(ax: Axes, start: Any, end: Any, value: Any, *, colour: str, label: str) -> None:
    times, level = step_function(start, end, value, 0.0)
    last = np.append(np.diff(times) > TOLERANCE_S, True)  # what ends and begins at once is no gap
    times, level = times[last], level[last]
    ax.step(times / HOUR, np.maximum(level, 0), where="post", color=colour, linewidth=1.2)
    ax.set_ylabel(label)
    ax.set_ylim(bottom=0)
    plain(ax, "both")


def _gpus(problem: ElasticProblem, solution: ElasticSolution, ax: Axes) -> None:
    inside = solution.kind != Kind.PRERUN
    start, end = solution.start_s[inside], solution.end_s[inside]
    _steps(
        ax, start, end, solution.gpus[inside].astype(float), colour=COLOURS[0], label="GPUs in use"
    )
    ax.axhline(problem.gpus, color=GREY, linewidth=0.8, linestyle=":")


def _power(problem: ElasticProblem, solution: ElasticSolution, ax: Axes) -> None:
    inside = solution.kind != Kind.PRERUN
    watts = powers(problem, solution)[inside] / 1000
    start, end = solution.start_s[inside], solution.end_s[inside]
    _steps(ax, start, end, watts, colour=COLOURS[1], label="power of jobs (kW)")
    if np.isfinite(problem.power_limit_w):
        limit = problem.power_limit_w / 1000
        ax.axhline(limit, color="black", linewidth=0.8, linestyle="--")
        words = f"limit {limit:.4g} kW (η = {problem.eta:g})"
        ax.annotate(words, (1.0, limit), xycoords=("axes fraction", "data"), ha="right",
                    va="bottom", fontsize=8)  # fmt: skip
        ax.set_ylim(top=1.15 * limit)
