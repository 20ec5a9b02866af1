"""Picture of a placement over time: power and GPUs in use above a heat map of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.timeline import Timeline, timeline
from optgap.models.times import from_first_event, span, unit_of
from optgap.plotting.figures import COLOURS, headed, heading, new_figure, plain
from optgap.render import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 300
"""Columns of the heat map."""
DETAILED = 600
"""Up to so many changes power is drawn as it is; beyond, its means over so many equal parts."""


def draw(problem: PlacementProblem, solution: PlacementSolution, by: str = "") -> Figure:
    """Draw what the cluster draws and how full its nodes are, from the horizon's begin on."""
    problem, solution = from_first_event(problem, solution)
    line = timeline(problem, solution)
    rules = problem.over_time
    assert rules is not None
    until = max(rules.horizon_s, float(line.time_s[-1]))
    unit_s, unit = unit_of(until)
    figure = new_figure(9.5, 6.4)
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
    _power(line, until, unit_s, top)
    if until > rules.horizon_s * (1 + 1e-9):
        for ax in (top, below):
            ax.axvline(rules.horizon_s / unit_s, color="#777777", linestyle=":", linewidth=1.0)
    _heat(problem, solution, until, unit_s, below)
    below.set_xlim(0, until / unit_s)
    below.set_xlabel(f"time ({unit})")
    headed(figure, heading(problem.family, problem.summary, by), _found(problem, solution))
    return figure


def _found(problem: PlacementProblem, solution: PlacementSolution) -> str:
    found = problem.evaluate(solution).metrics
    words = [
        f"{number(float(found['energy_j']))} J",
        f"{number(float(found['mean_power_w']))} W",
        f"{100 * found['mean_allocated_share']:.1f} % of the GPUs in use on average",
    ]
    if found["waited_tasks"]:
        words.append(f"{number(float(found['mean_wait_s']))} s of waiting on average")
    if found["failed_tasks"]:
        words.append(f"{found['failed_tasks']:,} of {found['tasks']:,} tasks turned away")
    return " · ".join(words)


def _power(line: Timeline, until: float, unit_s: float, ax: Axes) -> None:
    """Draw power, and against it the GPUs asked for."""
    highest = float(line.power_w.max())
    scale, unit = (1000.0, "kW") if highest > 2000 else (1.0, "W")
    fine = len(line) <= DETAILED

    def stepped(on: Axes, time_s: FloatArray, values: FloatArray, colour: str) -> None:
        if not fine:
            time_s, values = means(time_s, values, until)
        steps, heights = np.append(time_s, until) / unit_s, np.append(values, values[-1])
        on.step(steps, heights, where="post", color=colour, linewidth=0.9)

    stepped(ax, line.time_s, line.power_w / scale, COLOURS[0])
    what = "" if fine else f"\nmeans of {span(until / DETAILED)}"
    ax.set_ylabel(f"power ({unit}){what}", color=COLOURS[0])
    right = ax.twinx()
    stepped(right, line.time_s, line.used_gpu_milli / 1000, COLOURS[1])
    right.set_ylabel("GPUs asked for by what runs", color=COLOURS[1])
    right.set_ylim(bottom=0)
    ax.set_ylim(bottom=0)
    plain(ax, "both")


def means(time_s: FloatArray, values: FloatArray, until: float) -> tuple[FloatArray, FloatArray]:
    """Means of what stays as it is from each time to the next, over `DETAILED` equal parts."""
    times = np.append(time_s, until)
    total = np.concatenate([[0.0], np.cumsum(values * np.diff(times))])
    edges = np.linspace(0.0, until, DETAILED + 1)
    return edges[:-1], np.diff(np.interp(edges, times, total)) / np.diff(edges)


def _heat(
    problem: PlacementProblem, solution: PlacementSolution, until: float, unit_s: float, ax: Axes
) -> None:
    """Draw a line per node, darker where more is in use; models stand together."""
    from matplotlib import colormaps

    cluster = problem.cluster
    gpus = bool(cluster.gpus.any())
    capacity = 1000 * cluster.gpus if gpus else cluster.cpu_milli
    demand = problem.tasks.demand_milli if gpus else problem.tasks.cpu_milli
    used = in_use(problem, solution, demand, until)
    shown = np.flatnonzero(capacity > 0)
    shown = shown[np.lexsort((-used.sum(axis=1)[shown], [cluster.models[n] for n in shown]))]
    share = used[shown] / capacity[shown][:, None]
    options: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "vmin": 0, "vmax": 1}
    extent = (0.0, until / unit_s, len(shown) - 0.5, -0.5)
    image = ax.imshow(share, cmap=colormaps["Blues"], extent=extent, **options)
    names: dict[int, str] = {}
    for k, n in enumerate(shown.tolist()):
        model, last = cluster.models[n] or "no GPU", max(names, default=0)
        if k == 0 or model != (cluster.models[shown[k - 1]] or "no GPU"):
            near = bool(names) and k - last < len(shown) / 25
            names[last if near else k] = f"{names[last]}, {model}" if near else model
    ax.set_yticks(list(names), list(names.values()))
    ax.set_ylabel("nodes")
    ax.tick_params(length=0)
    figure: Any = ax.figure
    bar = figure.colorbar(image, ax=ax, shrink=0.8, aspect=20, pad=0.01)
    bar.set_label(f"{'GPU' if gpus else 'CPU'} in use")
    bar.set_ticks([0, 0.5, 1], labels=["0", "½", "1"])


def in_use(
    problem: PlacementProblem, solution: PlacementSolution, demand: IntArray, until: float
) -> FloatArray:
    """(N, `BINS`) what tasks take of each node, on average over equal parts of the time."""
    assert solution.start_s is not None
    placed = np.flatnonzero(solution.node >= 0)
    node, amount = solution.node[placed], demand[placed].astype(float)
    start = solution.start_s[placed] / until * BINS
    ends = solution.start_s[placed] + problem.lasting_s[placed]
    end = np.minimum(ends / until * BINS, BINS)
    first = np.minimum(np.floor(start).astype(np.int64), BINS - 1)
    last = np.minimum(np.floor(end).astype(np.int64), BINS - 1)
    # at a running sum: all of it from its first part on, less what is missing there and later
    steps = np.zeros((len(problem.cluster), BINS + 1))
    np.add.at(steps, (node, first), amount * (first + 1 - start))
    np.add.at(steps, (node, first + 1), amount * (start - first))
    np.add.at(steps, (node, last), -amount * (last + 1 - end))
    np.add.at(steps, (node, last + 1), -amount * (end - last))
    found: FloatArray = np.cumsum(steps, axis=1)[:, :BINS]
    return found
