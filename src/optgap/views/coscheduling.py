"""Gantt chart of a schedule: one line per GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution, JobRun
from optgap.models.times import from_first_event
from optgap.plotting.figures import EDGE, FILLS, IDLE, heading, new_figure, plain, titled
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 10.0
LETTERS = 130
"""Number of letters of a name that fit side by side across the picture."""


def draw(problem: CoschedulingProblem, solution: CoschedulingSolution, by: str = "") -> Figure:
    """Draw which job holds which GPU when; grey is idle.

    An application has one colour; its name and GPU count stand in the middle line of its run
    where there is room.
    """
    problem, solution = from_first_event(problem, solution)
    figure = new_figure(WIDTH, 1.7 + 0.42 * problem.gpus)
    ax = figure.subplots()
    end = float(problem.evaluate(solution).metrics["makespan_s"])
    ax.barh(range(problem.gpus), end, height=0.96, color=IDLE, linewidth=0)
    for run in solution.runs:
        _bar(problem, run, end, ax)
    ax.set_yticks(range(problem.gpus), [f"GPU {g}" for g in range(problem.gpus)])
    ax.set_ylim(problem.gpus - 0.45, -0.55)
    ax.set_xlim(0, end * 1.005 or 1.0)
    ax.set_xlabel("time (s); in brackets a run's GPUs, a colour for each application, grey: idle")
    titled(ax, heading(problem.family, problem.summary, by), _found(problem, solution))
    plain(ax, "x")
    return figure


def _found(problem: CoschedulingProblem, solution: CoschedulingSolution) -> str:
    found = problem.evaluate(solution).metrics
    words = f"{number(found['energy_j'])} J, {number(found['makespan_s'])} s"
    return f"{words}, GPUs in use {100 * float(found['gpu_utilisation']):.1f} % of the time"


def _bar(problem: CoschedulingProblem, run: JobRun, horizon: float, ax: Axes) -> None:
    """Draw a run: a box for each GPU that it holds, and its name."""
    colour = FILLS[problem.jobs[run.job] % len(FILLS)]
    lasts = run.end_s - run.start_s
    for g in run.gpu_index:
        ax.barh(
            g, lasts, left=run.start_s, height=0.96, color=colour, edgecolor=EDGE, linewidth=0.6
        )
    _name(problem.job_names[run.job], run, int(LETTERS * lasts / horizon), ax)


def _name(name: str, run: JobRun, room: int, ax: Axes) -> None:
    """Write the name in a middle line, upright where the box is tall rather than wide."""
    full = f"{name} ({run.gpu_count})"
    x = (run.start_s + run.end_s) / 2
    y = float(run.gpu_index[(len(run.gpu_index) - 1) // 2])
    block = run.gpu_index[-1] - run.gpu_index[0] == len(run.gpu_index) - 1
    if room >= 6:
        text = full if len(full) <= room else name if len(name) <= room else name[: room - 1] + "…"
        ax.text(x, y, text, ha="center", va="center", fontsize=7)
    elif room >= 1 and block and len(run.gpu_index) > 1:
        most = 6 * len(run.gpu_index)
        text = name if len(name) <= most else name[: most - 1] + "…"
        y = (run.gpu_index[0] + run.gpu_index[-1]) / 2
        ax.text(x, y, text, ha="center", va="center", fontsize=6.5, rotation=90)
