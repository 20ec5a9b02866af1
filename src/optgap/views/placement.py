"""Picture of a placement: every GPU of every node, and its load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.plotting.figures import headed, heading, new_figure
from optgap.render import number
from optgap.views.placement_over_time import draw as over_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DETAILED = 40
"""Largest number of nodes with every task drawn; above, every GPU is one cell of a map."""

SHARE, WHOLE, SEVERAL = "#56B4E9", "#0072B2", "#D55E00"
CPU = "#009E73"
EDGE, IDLE = "#999999", "#f4f4f4"
KINDS = ((SHARE, "share of a GPU"), (WHOLE, "one GPU"), (SEVERAL, "several GPUs"), (CPU, "CPU"))


def draw(problem: PlacementProblem, solution: PlacementSolution, by: str = "") -> Figure:
    """Draw the place of every task.

    A small cluster has a line per node, a box per GPU, a segment per task, and the CPU beside them.
    A large one has a column per node and a cell per GPU, which is darker if fuller. If tasks
    leave, the picture shows power and GPUs over time.
    """
    if problem.over_time is not None:
        return over_time(problem, solution, by)
    if len(problem.cluster) <= DETAILED:
        figure = new_figure(9.5, 1.7 + 0.34 * len(problem.cluster))
        _nodes(problem, solution, figure.subplots())
    else:
        figure = new_figure(9.5, 3.6)
        _map(problem, solution, figure.subplots())
    headed(figure, heading(problem.family, problem.summary, by), _found(problem, solution))
    return figure


def _found(problem: PlacementProblem, solution: PlacementSolution) -> str:
    found = problem.evaluate(solution).metrics
    words = [
        f"{number(found['power_w'])} W",
        f"{100 * found['allocated_share']:.1f} % of the GPUs in use",
        f"{100 * found['frag_share']:.1f} % fragments",
    ]
    if found["failed_tasks"]:
        words.append(f"{found['failed_tasks']:,} of {found['tasks']:,} tasks not placed")
    return " · ".join(words)


# -- a line per node ----------------------------------------------------------------------


def _nodes(problem: PlacementProblem, solution: PlacementSolution, ax: Axes) -> None:
    cluster, tasks = problem.cluster, problem.tasks
    order = sorted(range(len(cluster)), key=lambda n: (cluster.models[n], cluster.names[n]))
    line = {n: k for k, n in enumerate(order)}
    most = max(1, int(cluster.gpus.max()))
    for n in order:
        for g in range(int(cluster.gpus[n])):
            _box(ax, g, line[n], 1000, colour=IDLE, edge=EDGE)
        _box(ax, most + 0.5, line[n], 1000, colour=IDLE, edge=EDGE)
    filled = np.zeros((len(cluster), most), dtype=np.int64)
    for k in range(len(tasks)):
        n, milli = int(solution.node[k]), int(tasks.gpu_milli[k])
        if n < 0:
            continue
        colour = SEVERAL if tasks.num_gpu[k] > 1 else WHOLE if milli == 1000 else SHARE
        for g in solution.gpus(k):
            _box(ax, g + 0.92 * filled[n, g] / 1000, line[n], milli, colour=colour, edge="white")
            filled[n, g] += milli
    for n, used in enumerate(_cpu_share(problem, solution).tolist()):
        _box(ax, most + 0.5, line[n], round(1000 * used), colour=CPU, edge="none")
    ax.set_xlim(-0.15, most + 1.6)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_yticks(range(len(order)), [_named(problem, n) for n in order])
    ax.set_xticks([g + 0.46 for g in range(most)] + [most + 0.96], [*map(str, range(most)), "CPU"])
    ax.set_xlabel("GPU of the node")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    _legend(ax, KINDS)


def _box(ax: Axes, x: float, line: int, milli: int, *, colour: str, edge: str) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, line - 0.36), 0.92 * milli / 1000, 0.72, fc=colour, ec=edge, lw=0.6))


def _named(problem: PlacementProblem, n: int) -> str:
    model = problem.cluster.models[n]
    return f"{problem.cluster.names[n]}{f' ({model})' if model else ''}"


# -- a cell per GPU ------------------------------------------------------------------------


def _map(problem: PlacementProblem, solution: PlacementSolution, ax: Axes) -> None:
    """Draw a column per node: models stand together, the fullest node first, its CPU below."""
    from matplotlib import colormaps

    cluster, used = problem.cluster, _gpu_used(problem, solution) / 1000
    models = [cluster.models[n] if cluster.gpus[n] else "no GPU" for n in range(len(cluster))]
    order = np.lexsort((-used.sum(axis=1), models))
    cells = np.full((used.shape[1] + 1, len(cluster)), np.nan)
    for column, n in enumerate(order.tolist()):
        count = int(cluster.gpus[n])
        cells[:count, column] = np.sort(used[n, :count])[::-1]
    cells[-1] = _cpu_share(problem, solution)[order]
    shown: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "vmin": -0.12, "vmax": 1}
    image = ax.imshow(cells, cmap=colormaps["Blues"], **shown)
    figure: Any = ax.figure
    bar = figure.colorbar(image, ax=ax, shrink=0.8, aspect=14, pad=0.01, label="in use")
    bar.ax.set_ylim(0, 1)
    bar.set_ticks([0, 0.5, 1], labels=["0", "½", "1"])
    first = [k for k, n in enumerate(order) if k == 0 or models[n] != models[order[k - 1]]]
    sizes = [models.count(models[order[k]]) for k in first]
    names = [f"{models[order[k]]}, {size:,}" for k, size in zip(first, sizes, strict=True)]
    middles = [k + size / 2 for k, size in zip(first, sizes, strict=True)]
    ax.set_xticks(middles, names, rotation=30, ha="right")
    ax.set_yticks(range(len(cells)), [*(f"GPU {g}" for g in range(len(cells) - 1)), "CPU"])
    ax.set_xlabel("a column per node, the fullest of a model first")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


# -- what is used --------------------------------------------------------------------------


def _gpu_used(problem: PlacementProblem, solution: PlacementSolution) -> IntArray:
    """Return the milli-GPUs in use, shape (N, most GPUs)."""
    used = np.zeros((len(problem.cluster), max(1, int(problem.cluster.gpus.max()))), dtype=np.int64)
    for k, n in enumerate(solution.node.tolist()):
        if n >= 0:
            used[n, list(solution.gpus(k))] += int(problem.tasks.gpu_milli[k])
    return used


def _cpu_share(problem: PlacementProblem, solution: PlacementSolution) -> FloatArray:
    """Return the share of the CPU in use, shape (N,)."""
    capacity = problem.cluster.cpu_milli
    placed = solution.node >= 0
    used = np.bincount(
        solution.node[placed], problem.tasks.cpu_milli[placed], minlength=len(capacity)
    )
    return np.divide(used, capacity, out=np.zeros(len(capacity)), where=capacity > 0)


def _legend(ax: Axes, kinds: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=colour, label=text) for colour, text in kinds]
    figure: Any = ax.figure
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
