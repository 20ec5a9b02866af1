"""Hypothesis strategies for small problems, nasty on purpose.

Amounts come from short lists, so that ties, zeros, exact fits and identical items are common
rather than rare; a plain draw from a wide range would almost never produce them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st
from slow_placement import nodes_of

from optgap.models.placement import (
    Cluster,
    CpuProfile,
    PlacementObjective,
    PlacementProblem,
    PlacementSolution,
    PowerModel,
    TargetWorkload,
    Tasks,
)
from optgap.models.placement.objective import Goal, TimeGoal
from optgap.models.placement.over_time import OverTime

GOALS: tuple[Goal, ...] = get_args(Goal)
TIME_GOALS: tuple[TimeGoal, ...] = get_args(TimeGoal)
MODELS = ("G2", "T4", "P100")
SPECS = ("G2", "T4", "G2|T4", "P100|P100|T4", "V100M16")
CPU_SIZES = (0, 1000, 2000, 3152, 8000, 16000, 31000, 32000, 33000)
NODE_CPUS = (0, 8000, 31999, 32000, 32000, 48000, 64000, 96000)
MEMORY_SIZES = (0, 1024, 4096, 7000)
NODE_MEMORIES = (4096, 8192, 16384)
SHARES = (1, 100, 250, 333, 500, 501, 810, 999)

# One node type (cpu_milli, memory_mib, gpus, model), one task class
# (cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec).
NodeRow = tuple[int, int, int, str]
TaskRow = tuple[int, int, int, int, str]


@st.composite
def clusters(draw: st.DrawFn, max_nodes: int = 3, max_gpus: int = 4) -> Cluster:
    """Up to `max_nodes` nodes, often identical, some without GPUs."""
    kinds = draw(st.lists(_node_rows(max_gpus), min_size=1, max_size=2))
    rows = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_nodes))
    return Cluster.of([f"node-{k}" for k in range(len(rows))], *zip(*rows, strict=True))


@st.composite
def _node_rows(draw: st.DrawFn, max_gpus: int) -> NodeRow:
    gpus = draw(st.integers(0, max_gpus))
    model = draw(st.sampled_from(MODELS)) if gpus else draw(st.sampled_from(("", "G2")))
    return draw(st.sampled_from(NODE_CPUS)), draw(st.sampled_from(NODE_MEMORIES)), gpus, model


@st.composite
def _task_rows(draw: st.DrawFn, cluster: Cluster) -> TaskRow:
    # No single request may exceed the largest node: the problem refuses those at the door.
    most_gpus = int(cluster.gpus.max())
    num_gpu = draw(st.sampled_from([k for k in (0, 1, 1, 1, 1, 2, 3, 4) if k <= most_gpus]))
    share = draw(st.sampled_from((*SHARES, 1000, 1000)))
    milli = {0: 0, 1: share}.get(num_gpu, 1000)
    # Mostly a model that is there, else most problems would be infeasible.
    there = sorted({model for model in cluster.models if model})
    spec = draw(st.sampled_from(["", "", "", "", *there, *there, draw(st.sampled_from(SPECS))]))
    return (
        min(draw(st.sampled_from(CPU_SIZES)), int(cluster.cpu_milli.max())),
        min(draw(st.sampled_from(MEMORY_SIZES)), int(cluster.memory_mib.max())),
        num_gpu,
        milli,
        spec,
    )


def tasks_of(rows: Sequence[TaskRow], **more: Any) -> Tasks:
    """Tasks named by their place, one per row; `more` are columns of times."""
    return Tasks.of([f"task-{k}" for k in range(len(rows))], *zip(*rows, strict=True), **more)


@st.composite
def workloads(draw: st.DrawFn, cluster: Cluster) -> TargetWorkload:
    """A target workload that need not resemble the tasks, with plain float popularities."""
    rows = draw(st.lists(_task_rows(cluster), min_size=1, max_size=5))
    classes = {(cpu, milli, number, spec) for cpu, _, number, milli, spec in rows}
    size = len(classes)
    weights = draw(st.lists(st.floats(0.01, 10), min_size=size, max_size=size))
    columns = zip(*sorted(classes, reverse=True), strict=True)
    return TargetWorkload.of(*columns, [weight / sum(weights) for weight in weights])


@st.composite
def power_models(draw: st.DrawFn) -> PowerModel:
    """Both CPU rules; sometimes other packages than the paper's, or idle and full power alike."""
    rule = draw(st.sampled_from(("packages", "eq1")))
    if draw(st.booleans()):
        return PowerModel(cpu_rule=rule)
    cpu = draw(
        st.sampled_from((CpuProfile(4, 7.5, 33.25), CpuProfile(1, 0.0, 10.0), CpuProfile(16, 5, 5)))
    )
    full = draw(st.sampled_from((30.0, 41.7, 150.0)))
    idle = {"G2": 30.0, "T4": 0.1, "P100": 0.0, "V100M16": 30.0}
    return PowerModel(idle, dict.fromkeys(idle, full), cpu, rule)


@st.composite
def placement_problems(
    draw: st.DrawFn,
    *,
    goals: Sequence[Goal] = GOALS,
    max_nodes: int = 3,
    max_tasks: int = 6,
    max_gpus: int = 4,
) -> PlacementProblem:
    """Small placement problems: ties, zeros, identical items; tight, infeasible, memory-bound."""
    cluster = draw(clusters(max_nodes, max_gpus))
    kinds = draw(st.lists(_task_rows(cluster), min_size=1, max_size=4))
    rows = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_tasks))
    objective = PlacementObjective(
        draw(st.sampled_from(list(goals))),
        draw(st.sampled_from((0.5, 0.05, 0.0, 1.0))),
        draw(st.sampled_from((120.0, 1.0, 0.0))),
    )
    return PlacementProblem.of(
        cluster,
        tasks_of(rows),
        draw(st.none() | workloads(cluster)),
        draw(st.permutations(range(len(cluster)))),
        draw(power_models()),
        objective,
        name="random",
        origin="synthetic",
    )


@st.composite
def timed_placement_problems(
    draw: st.DrawFn,
    *,
    goals: Sequence[TimeGoal] = TIME_GOALS,
    **sizes: int,
) -> PlacementProblem:
    """`placement_problems` whose tasks come and leave: many at one time, some at the horizon."""
    still = draw(placement_problems(**sizes))
    count = len(still.tasks)
    begin = draw(st.sampled_from((0.0, 1.7e9)))
    submit = draw(st.lists(st.sampled_from((0.0, 1.0, 1.5, 4.0)), min_size=count, max_size=count))
    lives = st.sampled_from((0.5, 1.0, 2.5, 3.0, math.inf))
    duration = draw(st.lists(lives, min_size=count, max_size=count))
    horizon = draw(st.sampled_from((math.nan, 4.5, 8.0)))
    if math.inf in duration and math.isnan(horizon):
        horizon = 6.0
    times = {"submit_s": begin + np.array(submit), "duration_s": np.array(duration, dtype=float)}
    return PlacementProblem.of(
        still.cluster,
        replace(still.tasks, **times),
        still.workload,
        still.ranks,
        still.power,
        replace(still.objective, goal=draw(st.sampled_from(list(goals)))),
        "random",
        "synthetic",
        over_time=OverTime(begin, horizon),
    )


@st.composite
def placements_that_fit(
    draw: st.DrawFn, **sizes: int
) -> tuple[PlacementProblem, PlacementSolution]:
    """A problem, and each task on the first of some nodes that has room for it."""
    problem = draw(placement_problems(**sizes))
    nodes = nodes_of(problem)
    placed: list[tuple[int, tuple[int, ...]] | None] = [None] * len(problem.tasks)
    for k in range(len(problem.tasks)):
        task = problem.tasks.task_class(k)
        for n in draw(st.lists(st.integers(0, len(nodes) - 1), max_size=3)):
            if places := list(nodes[n].places(task)):
                gpus = draw(st.sampled_from(places))
                placed[k] = n, gpus
                nodes[n].put(k, task, gpus)
                break
    return problem, PlacementSolution.of(placed)
