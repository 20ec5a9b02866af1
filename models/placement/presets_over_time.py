"""Ready-made problems whose tasks leave: the Alibaba workload with synthetic times."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.errors import InputError
from optgap.models.placement.alibaba import LIVES_S, NODE_TYPES
from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.making import (
    ORIGIN,
    aims_of,
    cluster_of,
    proportional,
    target_of_classes,
    that_fit,
    trace_of_classes,
)
from optgap.models.placement.objective import Goal, TimeGoal, over_time_goal
from optgap.models.placement.over_time import OverTime
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.tasks import Tasks
from optgap.models.shown import counted

DAY_S = 86_400.0
MOST_TASKS = 1_000_000


def alibaba_time(
    *,
    seed: int,
    size: int = 8152,
    days: float = 14.0,
    load: float = 0.4,
    nodes: int = 0,
    goal: Goal | TimeGoal = "energy",
    **aims: Any,
) -> PlacementProblem:
    """Return `size` tasks of the Default workload that come and leave, on a cluster that fits them.

    Parameters
    ----------
    size: tasks, at random times, whose lives are drawn from the trace's quantiles (`LIVES_S`).
    days: the horizon.
    load, nodes: the nodes, in the cluster's own proportions; 0 for as many as keep the GPU
        demand, were everything to run when it comes, at `load` of the GPUs at its peak.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    _require(size=(size, 1, MOST_TASKS), days=(days, 1e-3, 1e4))
    _require(load=(load, 1e-3, 1e3), nodes=(nodes, 0, 100_000))
    arrivals, ranks, lives = np.random.default_rng(seed).spawn(3)
    horizon_s = days * DAY_S
    tasks = _synthetic(size, horizon_s, arrivals, lives)
    origin = f"{ORIGIN}; synthetic times after its quantiles of lives"
    rules = OverTime(math.nan, horizon_s)
    cluster = _matching(tasks, rules, load, nodes)
    kept = that_fit(tasks, cluster)
    if len(kept) < len(tasks):
        origin += f"; {counted(len(tasks) - len(kept), 'task that no node can take left out')}"
    return PlacementProblem.of(
        cluster,
        kept,
        target_of_classes(),
        ranks.permutation(len(cluster)),
        *aims_of(over_time_goal(goal), **aims),
        f"alibaba-time, {len(kept)} tasks, {days:g} days, {len(cluster)} nodes, seed {seed}",
        origin,
        over_time=rules,
    )


def _require(**values: tuple[float, float, float]) -> None:
    """Raise InputError, naming the parameter, for a value that is not within its limits."""
    for name, (value, least, most) in values.items():
        if not least <= value <= most:
            raise InputError("--set", name, value, f"{least:g} to {most:g}")


def drawn_lives(size: int, rng: np.random.Generator) -> FloatArray:
    """Lives by the trace's quantiles, geometric between them, whole s."""
    shares, lives = zip(*LIVES_S, strict=True)
    drawn = np.exp(np.interp(rng.random(size), shares, np.log(lives)))
    found: FloatArray = np.floor(drawn + 0.5)
    return found


def _synthetic(
    size: int,
    horizon_s: float,
    arrivals: np.random.Generator,
    lives: np.random.Generator,
) -> Tasks:
    trace = trace_of_classes()
    chosen = trace.take(arrivals.integers(len(trace), size=size).tolist())
    submit = np.floor(np.sort(arrivals.random(size)) * horizon_s)
    submit = np.minimum(submit, math.ceil(horizon_s) - 1)
    return replace(chosen, submit_s=submit - submit[0], duration_s=drawn_lives(size, lives))


def _matching(tasks: Tasks, rules: OverTime, load: float, nodes: int) -> Cluster:
    """So many nodes of the Alibaba cluster, or as many as the tasks' highest demand needs."""
    if nodes:
        return cluster_of(proportional(NODE_TYPES, nodes))
    settled = rules.settled(tasks, "--set")
    moments = np.concatenate([tasks.submit_s, tasks.submit_s + settled.lasting_s(tasks)])
    change = np.concatenate([tasks.demand_milli, -tasks.demand_milli])
    order = np.lexsort((change, moments))
    peak = int(np.cumsum(change[order]).max(initial=0))
    count = 1
    while cluster_of(proportional(NODE_TYPES, count)).gpu_capacity_milli * load < peak:
        count += 1
    return cluster_of(proportional(NODE_TYPES, count))
