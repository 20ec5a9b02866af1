"""Picture of a placement over time: power and the requested GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.timeline import Timeline, timeline
from optgap.models.times import from_first_event, span, unit_of
from optgap.plotting.figures import headed, heading, new_figure, twin_steps
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DETAILED = 600
"""Largest number of changes that are drawn; with more, means over so many equal parts are."""


def draw(problem: PlacementProblem, solution: PlacementSolution, by: str = "") -> Figure:
    """Draw the power of the cluster and the GPUs that running tasks request."""
    problem, solution = from_first_event(problem, solution)
    line = timeline(problem, solution)
    rules = problem.over_time
    assert rules is not None
    until = rules.horizon_s
    unit_s, unit = unit_of(until)
    figure = new_figure(9.5, 4.0)
    ax = figure.subplots()
    _power(line, until, unit_s, ax)
    ax.set_xlim(0, until / unit_s)
    ax.set_xlabel(f"time ({unit})")
    headed(figure, heading(problem.family, problem.summary, by), _found(problem, solution))
    return figure


def _found(problem: PlacementProblem, solution: PlacementSolution) -> str:
    found = problem.evaluate(solution).metrics
    words = [
        f"{number(float(found['energy_j']))} J",
        f"{number(float(found['mean_power_w']))} W",
        f"{100 * found['mean_allocated_share']:.1f} % of the GPUs in use on average",
    ]
    if found["failed_tasks"]:
        words.append(f"{found['failed_tasks']:,} of {found['tasks']:,} tasks turned away")
    return " · ".join(words)


def _power(line: Timeline, until: float, unit_s: float, ax: Axes) -> None:
    """Draw power, and the requested GPUs against the right axis."""
    scale, unit = (1000.0, "kW") if float(line.power_w.max()) > 2000 else (1.0, "W")
    time_s, curves, what = line.time_s, [line.power_w / scale, line.used_gpu_milli / 1000], ""
    if len(line) > DETAILED:
        curves = [means(line.time_s, values, until) for values in curves]
        time_s = np.linspace(0.0, until, DETAILED + 1)[:-1]
        what = f"\nmeans of {span(until / DETAILED)}"
    power, gpus = (np.append(values, values[-1]) for values in curves)
    labels = (f"power ({unit}){what}", "GPUs asked for by what runs")
    twin_steps(ax, np.append(time_s, until) / unit_s, power, gpus, labels=labels)


def means(time_s: FloatArray, values: FloatArray, until: float) -> FloatArray:
    """Return means over `DETAILED` equal parts of values that hold until the next time."""
    times = np.append(time_s, until)
    total = np.concatenate([[0.0], np.cumsum(values * np.diff(times))])
    edges = np.linspace(0.0, until, DETAILED + 1)
    found: FloatArray = np.diff(np.interp(edges, times, total)) / np.diff(edges)
    return found
