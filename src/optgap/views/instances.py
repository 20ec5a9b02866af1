"""Pictures and tables of problems, before anybody has solved them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.plotting.figures import COLOURS, GREY, MARKERS, aim, heading, new_figure, plain, titled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 20
"""Applications or models with a line of their own."""


def frame(problem: Any) -> pd.DataFrame:
    """What is to be served, one row each: tasks, jobs, or applications by GPU count."""
    import pandas as pd

    return pd.DataFrame(_FRAMES[problem.family](problem))


def draw(problem: Any) -> Figure:
    """What is asked for, and of what: sizes, times, and how they go together."""
    figure = new_figure(8.0, 4.0)
    ax = figure.subplots()
    _PICTURES[problem.family](problem, ax)
    titled(ax, heading(problem.family, problem.summary), aim(problem.summary))
    plain(ax, "both")
    return figure


# -- tables -------------------------------------------------------------------------------


def _placement(problem: Any) -> Any:
    tasks = problem.tasks
    return {
        "task": tasks.names,
        "cpu_milli": tasks.cpu_milli,
        "memory_mib": tasks.memory_mib,
        "num_gpu": tasks.num_gpu,
        "gpu_milli": tasks.gpu_milli,
        "gpu_spec": tasks.gpu_specs,
    }


def _consolidation(problem: Any) -> Any:
    return [
        {
            "task": task.name,
            "app": task.app,
            "memory_gb": task.memory_gb,
            "gpus": task.gpus,
            "kappa": task.kappa,
            "submit_s": task.submit_s,
            "duration_s": task.duration_s,
            "util_percent": float(task.util_percent.mean()),
        }
        for task in problem.tasks
    ]


def _coscheduling(problem: Any) -> Any:
    queued = {app.name: 0 for app in problem.applications}
    for job in range(len(problem)):
        queued[problem.application(job).name] += 1
    return [
        {
            "app": app.name,
            "queued": queued[app.name],
            "gpu_count": mode.gpu_count,
            "runtime_s": mode.runtime_s,
            "fitted_s": mode.fitted_s,
            "avg_power_per_gpu_w": mode.power_per_gpu_w,
            "dram_util_sum": mode.dram_util_sum,
        }
        for app in problem.applications
        for mode in app.modes
    ]


def _elastic(problem: Any) -> Any:
    jobs, classes = problem.jobs, [problem.classes[c] for c in problem.jobs.of_class]
    return {
        "job": jobs.names,
        "submit_s": jobs.submit_s,
        "model": [c.model for c in classes],
        "batch": [c.batch for c in classes],
        "iterations": jobs.iterations,
        "gpus": jobs.requested,
        "least_jct_s": problem.least_jct_s,
    }


def _queueing(problem: Any) -> Any:
    jobs = problem.jobs
    columns = {
        "job": jobs.names,
        "arrival_s": jobs.arrival_s,
        "duration_s": jobs.duration_s,
        "gpus": jobs.gpus,
        "type": jobs.kinds,
        "family": jobs.families,
        "iterations": jobs.iterations,
    }
    return columns if jobs.batches is None else {**columns, "batch": jobs.batches}


_FRAMES: Mapping[str, Callable[[Any], Any]] = {
    "placement": _placement,
    "consolidation": _consolidation,
    "coscheduling": _coscheduling,
    "elastic": _elastic,
    "queueing": _queueing,
}


# -- pictures -----------------------------------------------------------------------------


def _demand(problem: Any, ax: Axes) -> None:
    """GPU demand as tasks arrive, against what the cluster has."""
    demand = np.cumsum(problem.tasks.demand_milli) / 1000
    capacity = problem.cluster.gpu_capacity_milli / 1000
    ax.step(np.arange(1, len(demand) + 1), demand, where="post", color=COLOURS[0], label="asked")
    ax.axhline(capacity, color=GREY, linestyle="--", label=f"GPUs there are, {capacity:g}")
    ax.set_xlabel("task, in order of arrival")
    ax.set_ylabel("GPUs asked for")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize="small")


def _tasks(problem: Any, ax: Axes) -> None:
    """Memory against utilisation, the larger the more GPUs."""
    memory = np.array([task.memory_gb for task in problem.tasks])
    util = np.array([task.util_percent.mean() for task in problem.tasks])
    _by_gpus(ax, np.array([task.gpus for task in problem.tasks]), memory, util, (18, 10))
    ax.set_xlabel("memory of a task (GB)")
    ax.set_ylabel("its mean utilisation (%)")


def _by_gpus(ax: Axes, width: Any, x: Any, y: Any, size: tuple[int, int]) -> None:
    """A mark at each (x, y), larger and of another colour the more GPUs; `size`: least, per GPU."""
    for k, gpus in enumerate(np.unique(width).tolist()):
        rows = np.flatnonzero(width == gpus)
        ax.scatter(
            x[rows], y[rows], s=size[0] + size[1] * min(gpus, 32), alpha=0.6,
            color=COLOURS[k % len(COLOURS)], label=f"{gpus} GPU" + "s" * (gpus > 1),
        )  # fmt: skip
    ax.set_ylim(bottom=0)
    _names_beside(ax, "small")


def _names_beside(ax: Axes, fontsize: str) -> None:
    ax.legend(frameon=False, fontsize=fontsize, loc="upper left", bbox_to_anchor=(1, 1))


def _scaling(problem: Any, ax: Axes) -> None:
    """Run time over GPU counts relative to the fewest; dashed where it is fitted."""
    several = [app for app in problem.applications if len(app.modes) > 1][:MOST_LINES]
    for k, app in enumerate(several):
        counts = [mode.gpu_count for mode in app.modes]
        first = app.modes[0].runtime_s
        colour, mark = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        times = [mode.runtime_s / first for mode in app.modes]
        ax.plot(counts, times, color=colour, marker=mark, markersize=4, label=app.name)
        fitted = [mode.fitted_s / first if mode.fitted_s else np.nan for mode in app.modes]
        ax.plot(counts, fitted, color=colour, linestyle=":", linewidth=1)
    ax.set_xticks(sorted({m.gpu_count for app in several for m in app.modes}))
    ax.set_xlabel("GPUs" + ("; dotted: fitted" if problem.fits else ""))
    ax.set_ylabel("run time, fewest GPUs = 1")
    ax.set_ylim(bottom=0)
    _names_beside(ax, "x-small")


def _speed(problem: Any, ax: Axes) -> None:
    """Throughput of each class over its GPU counts at the top clock, fewest = 1."""
    for k, item in enumerate(problem.classes[:MOST_LINES]):
        speed = item.time_s[0, -1] / item.time_s[:, -1]
        colour, mark = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        ax.plot(item.counts, speed, color=colour, marker=mark, markersize=4, label=item.label)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    counts = sorted({n for item in problem.classes for n in item.counts})
    ax.set_xticks(counts, [str(n) for n in counts])
    ax.set_yticks(counts, [str(n) for n in counts])
    ax.set_xlabel("GPUs, at the highest clock")
    ax.set_ylabel("iterations per s, fewest GPUs = 1")
    _names_beside(ax, "x-small")


def _stream(problem: Any, ax: Axes) -> None:
    """Jobs by arrival and duration, the larger the more GPUs."""
    jobs = problem.jobs
    hours = (jobs.arrival_s - jobs.arrival_s[0]) / 3600
    _by_gpus(ax, jobs.gpus, hours, jobs.duration_s / 3600, (12, 6))
    ax.set_xlabel("arrival (h)")
    ax.set_ylabel("duration (h)")


_PICTURES: Mapping[str, Callable[[Any, Axes], None]] = {
    "placement": _demand,
    "consolidation": _tasks,
    "coscheduling": _scaling,
    "elastic": _speed,
    "queueing": _stream,
}
