"""Tables of problems without a solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame(problem: Any) -> pd.DataFrame:
    """Return a row for each task or job, or for each application and GPU count."""
    import pandas as pd

    return pd.DataFrame(_FRAMES[problem.family](problem))


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
