"""Why tasks cannot all be placed, where a capacity alone tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.placement.cluster import NodeType
from optgap.models.placement.tasks import TaskClass
from optgap.models.shortage import short

if TYPE_CHECKING:
    from optgap.models.placement.problem import PlacementProblem

MOST_SHOWN = 3
"""Types of nodes in one line."""


def why_not(problem: PlacementProblem, tasks: Sequence[int]) -> str:
    """What these tasks together want more of than there is; of one task, why no node takes it.

    "" where every capacity suffices: then it is how the tasks fit together; and of several tasks
    that leave again, which need not be there at one time.
    """
    rows = np.flatnonzero(problem.tasks.first)[list(tasks)].tolist()
    if len(rows) == 1 and rows[0] in problem.never_fits:
        task = problem.tasks.task_class(rows[0])
        types = problem.cluster.types
        there = sum(problem.fits_empty(task, types[t]) for t in problem.cluster.type_of.tolist())
        if there:
            return f"{problem.tasks.parts[rows[0]]} nodes asked, {there} could take a part"
        return _nowhere(problem, task)
    if problem.over_time is not None:
        return ""
    return "; ".join(filter(None, _totals(problem, tasks)))


def _nowhere(problem: PlacementProblem, task: TaskClass) -> str:
    """Every type of node with what it lacks."""
    types = list(problem.cluster.types)
    shown = [f"{_named(node)}: {', '.join(_lacks(task, node))}" for node in types[:MOST_SHOWN]]
    if len(types) > MOST_SHOWN:
        shown.append(f"and {len(types) - MOST_SHOWN} more types of nodes")
    return "; ".join(shown)


def _named(node: NodeType) -> str:
    gpus = f"{node.gpus} {node.model} GPUs" if node.gpus else "no GPU"
    return f"nodes of {node.cpu_milli} milli-CPU, {node.memory_mib} MiB, {gpus}"


def _lacks(task: TaskClass, node: NodeType) -> Iterator[str]:
    """What an empty node of this type lacks for one such task."""
    for what, wanted, there in (
        ("milli-CPU", task.cpu_milli, node.cpu_milli),
        ("MiB", task.memory_mib, node.memory_mib),
        ("GPUs", task.num_gpu, node.gpus),
    ):
        if wanted > there:
            yield f"short by {wanted - there} {what}"
    if task.num_gpu and node.gpus and not task.accepts(node.model):
        yield f"not of {task.gpu_spec}"


def _totals(problem: PlacementProblem, tasks: Sequence[int]) -> Iterator[str]:
    cluster, chosen = problem.cluster, [problem.tasks.task_class(k) for k in tasks]
    cpu, memory = (int(np.sum(x)) for x in (cluster.cpu_milli, cluster.memory_mib))
    yield short("CPU", sum(task.cpu_milli for task in chosen), cpu, "milli-CPU")
    yield short("memory", sum(task.memory_mib for task in chosen), memory, "MiB")
    for models in sorted({task.allowed_models for task in chosen if task.num_gpu}):
        # all that may only go where these may
        inside = [t for t in chosen if t.num_gpu and _within(t, models)]
        there = sum(
            int(gpus)
            for gpus, model in zip(cluster.gpus, cluster.models, strict=True)
            if not models or model in models
        )
        asked = sum(task.demand_milli for task in inside) / 1000
        yield short("GPUs" + (f" of {'|'.join(models)}" if models else ""), asked, there, "GPUs")


def _within(task: TaskClass, models: tuple[str, ...]) -> bool:
    """Whether a task may go nowhere but to these models; no models stand for all."""
    return not models or (bool(task.allowed_models) and set(task.allowed_models) <= set(models))
