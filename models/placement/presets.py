"""Presets of placement: counts that ship with the package, and CSV files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.saved import FittedParameters, read_fits
from optgap.models.placement.alibaba import NODE_TYPES
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.fits import matches, refit, watts_of
from optgap.models.placement.making import (
    ORIGIN,
    aims_of,
    cluster_of,
    power_model,
    proportional,
    target_of_classes,
    that_fit,
    trace_of_classes,
)
from optgap.models.placement.objective import Goal, PlacementObjective, TimeGoal, over_time_goal
from optgap.models.placement.openb import (
    has_times,
    read_devices,
    read_nodes,
    read_order,
    read_ranks,
    read_tasks,
)
from optgap.models.placement.over_time import NO_QUEUE, OverTime
from optgap.models.placement.power import CpuRule, PowerModel
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.sampling import Sampling, inflate
from optgap.models.placement.tasks import TargetWorkload, Tasks
from optgap.models.quantities import warn
from optgap.models.shown import counted
from optgap.models.spec import Entry, entries
from optgap.models.tables import Column, read_table

OBJECTIVE_PARAMS = {
    "goal": "power",
    "alpha": 0.5,
    "cpu_rule": "packages",
}


def _presets() -> dict[str, Callable[..., Any]]:
    from optgap.models.placement.presets_over_time import alibaba_time

    return {"alibaba": alibaba, "small": small, "alibaba-time": alibaba_time}


PRESETS = entries(
    _presets,
    Entry(
        "alibaba",
        "the Alibaba 2023 cluster (size = nodes, 1,213) and its Default workload up to a load",
        params={"size": 1213, "load": 0.7, "sampling": "monte-carlo", **OBJECTIVE_PARAMS},
        seeded=True,
    ),
    Entry(
        "small",
        "eight nodes of the Alibaba types and a few of its tasks (size = tasks, 40): exact methods",
        params={"size": 40, "goal": "power", "alpha": 0.5},
        seeded=True,
    ),
    Entry(
        "alibaba-time",
        "tasks that leave (size, 8,152) over weeks, on as many Alibaba nodes as they need",
        params={
            "size": 8152,
            "days": 14.0,
            "load": 0.4,
            "nodes": 0,
            **OBJECTIVE_PARAMS,
            "goal": "energy",
        },
        seeded=True,
    ),
)

SMALL_CLUSTER = (
    ("G2", 8, 96_000, 393_216, 3),
    ("T4", 2, 104_000, 524_288, 2),
    ("P100", 2, 16_000, 122_880, 1),
    ("V100M16", 4, 32_000, 131_072, 1),
    ("V100M32", 4, 48_000, 376_832, 1),
)


def alibaba(
    *,
    seed: int,
    size: int = 1213,
    load: float = 0.7,
    sampling: Sampling = "monte-carlo",
    **aims: Any,
) -> PlacementProblem:
    """Return the Alibaba cluster with `size` nodes in its own proportions, loaded up to `load`.

    Arrivals and ranks are drawn from `seed`; those up to a smaller load are a prefix of those
    up to a larger one (with ``monte-carlo`` sampling).

    Raises
    ------
    InputError: for a size below 1 or a parameter out of range.
    """
    if size < 1:
        raise InputError("size", "", size, "at least 1 node")
    arrivals, ranks = np.random.default_rng(seed).spawn(2)
    cluster = cluster_of(proportional(NODE_TYPES, size))
    trace = trace_of_classes()
    if size != 1213:
        trace = that_fit(trace, cluster)
    chosen = inflate(trace, cluster.gpu_capacity_milli, load, arrivals, sampling=sampling)
    return PlacementProblem.of(
        cluster,
        trace.take(chosen.tolist()),
        target_of_classes(),
        ranks.permutation(size),
        *aims_of(**aims),
        f"alibaba, load {load:g}, seed {seed}" + ("" if size == 1213 else f", {size} nodes"),
        ORIGIN,
    )


def small(*, seed: int, size: int = 40, **aims: Any) -> PlacementProblem:
    """Return eight nodes with 38 GPUs, and `size` tasks drawn from the Default workload.

    Raises
    ------
    InputError: for a size below 1 or a parameter out of range.
    """
    if size < 1:
        raise InputError("size", "", size, "at least 1 task")
    arrivals, ranks = np.random.default_rng(seed).spawn(2)
    cluster = cluster_of(SMALL_CLUSTER)
    trace = that_fit(trace_of_classes(), cluster)
    return PlacementProblem.of(
        cluster,
        trace.take(arrivals.integers(len(trace), size=size).tolist()),
        target_of_classes(),
        ranks.permutation(len(cluster)),
        *aims_of(**aims),
        f"small, {size} tasks, seed {seed}",
        ORIGIN,
    )


def from_csv(
    nodes: str | os.PathLike[str],
    tasks: str | os.PathLike[str],
    order: str | os.PathLike[str] | None = None,
    ranks: str | os.PathLike[str] | None = None,
    devices: str | os.PathLike[str] | None = None,
    model: Any = None,
    *,
    seed: int,
    load: float = 0.0,
    sampling: Sampling = "trace-first",
    queue: str = "",
    horizon_s: float = 0.0,
    goal: Goal | TimeGoal = "power",
    alpha: float = 0.5,
    watts_per_gpu: float = 120.0,
    cpu_rule: CpuRule = "packages",
    strict: bool = True,
) -> PlacementProblem:
    """Return a problem made of a node list and a task list.

    Without `order` the tasks arrive once, as they stand in their file; with a `load` above 0
    arrivals are drawn from `seed` by `sampling` until they ask for that share of the GPUs. Without
    `ranks` these are a permutation drawn from `seed`. The target workload is that of the
    task file as it stands. `devices` (``model,idle_w,full_w``) adds GPU models, `model` (fits of
    ``device-power``) measures them. With `strict`,
    values that look like another unit are refused.

    With the `queue` ``reject`` every task comes once, at its own time, and leaves, or is turned
    away where it does not fit; so do tasks in a file that has ``submit_s`` and ``duration_s``.
    `horizon_s` cuts what is later; a goal stands for the one over time.

    Raises
    ------
    InputError: with file, row and column of a value that cannot be used.
    """
    arrivals, rank_rng = np.random.default_rng(seed).spawn(2)
    fits = read_fits(model)
    power = power_model(cpu_rule)
    if devices is not None:
        power = read_devices(devices, strict, power)
    power = _with_fits(power, fits, nodes)
    cluster = read_nodes(nodes, power, strict)
    if queue not in ("", "reject"):
        raise InputError("--set", "queue", queue, NO_QUEUE)
    timed = bool(queue) or has_times(tasks)
    trace = read_tasks(tasks, cluster, power, times=timed)
    over_time, drawn = None, ""
    if timed:
        if order is not None:
            found = NoQuote("an order beside times")
            raise InputError(str(order), "", found, "one or the other: tasks come when they come")
        over_time, chosen = _horizon(horizon_s, trace)
        goal = over_time_goal(goal)
    elif order is not None:
        chosen = read_order(order, trace)
    elif load == 0:
        chosen = np.arange(len(trace))
    else:
        chosen = inflate(trace, cluster.gpu_capacity_milli, load, arrivals, sampling=sampling)
        drawn = f"; arrivals: {len(chosen)} drawn from {len(trace)} tasks, load={load:g}"
    stem = os.path.splitext(os.path.basename(os.fspath(tasks)))[0]
    problem = PlacementProblem.of(
        cluster,
        trace.take(chosen.tolist()),
        TargetWorkload.from_tasks(trace),
        rank_rng.permutation(len(cluster)) if ranks is None else read_ranks(ranks, cluster),
        power,
        PlacementObjective(goal, alpha, watts_per_gpu),
        stem,
        f"{os.path.basename(os.fspath(nodes))}, {os.path.basename(os.fspath(tasks))}{drawn}",
        over_time=over_time,
    )
    return refit(problem, fits, deal=False) if fits else problem


def _horizon(horizon_s: float, trace: Tasks) -> tuple[OverTime, IntArray]:
    """Return the rules, and the tasks that are submitted within the horizon.

    Without a length the horizon ends with the last task that leaves.
    """
    begin = float(trace.submit_s.min())
    if horizon_s:
        kept = np.flatnonzero(trace.submit_s < begin + horizon_s)
        if len(kept) < len(trace):
            warn(counted(len(trace) - len(kept), "task after the horizon left out"))
        return OverTime(begin, horizon_s), kept
    ends = (trace.submit_s + trace.duration_s)[np.isfinite(trace.duration_s)]
    last = max(float(ends.max(initial=begin)), float(trace.submit_s.max()))
    length = last - begin if np.isinf(trace.duration_s).any() else np.nan
    return OverTime(begin, length), np.arange(len(trace))


def _with_fits(
    power: PowerModel, fits: Sequence[FittedParameters], nodes: str | os.PathLike[str]
) -> PowerModel:
    """Return the power of the devices that a node list may name, those of fits included."""
    if not fits:
        return power
    boards, _ = watts_of(fits)
    named = read_table(nodes, [Column("model", empty="")])["model"]
    found = {model: boards[group] for model, group in matches(boards, named).items()}
    idle, full = ({model: watts[k] for model, watts in found.items()} for k in (0, 1))
    return replace(
        power, gpu_idle_w={**power.gpu_idle_w, **idle}, gpu_full_w={**power.gpu_full_w, **full}
    )
