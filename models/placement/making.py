"""Parts of presets: clusters and tasks from counts of the Alibaba trace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain, repeat
from typing import get_args

import numpy as np

from optgap.models.errors import InputError, one_of
from optgap.models.placement.alibaba import TASK_CLASSES
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.objective import Goal, PlacementObjective, TimeGoal
from optgap.models.placement.power import CpuRule, PowerModel
from optgap.models.placement.tasks import TargetWorkload, Tasks

ORIGIN = "Alibaba cluster-trace-gpu-v2023 (counts)"


def power_model(cpu_rule: CpuRule = "packages") -> PowerModel:
    """Return the paper's devices under one of the two CPU rules.

    Raises
    ------
    InputError: for an unknown rule.
    """
    if cpu_rule not in get_args(CpuRule):
        raise InputError("cpu_rule", "", cpu_rule, one_of(get_args(CpuRule)))
    return PowerModel(cpu_rule=cpu_rule)


def aims_of(
    goal: Goal | TimeGoal = "power",
    alpha: float = 0.5,
    cpu_rule: CpuRule = "packages",
) -> tuple[PowerModel, PlacementObjective]:
    """Return what every preset lets one choose: the CPU rule, and what is optimised."""
    return power_model(cpu_rule), PlacementObjective(goal, alpha)


def cluster_of(types: Sequence[tuple[str, int, int, int, int]]) -> Cluster:
    """Return a cluster from (model, GPUs, milli-vCPU, MiB, count) rows; nodes are named by type."""
    rows = list(chain.from_iterable(repeat(row[:4], row[4]) for row in types))
    counts: dict[str, int] = {}
    names = []
    for model, gpus, cpu, _memory in rows:
        kind = f"{model.lower() or 'cpu'}-{gpus}g{cpu // 1000}c"
        counts[kind] = counts.get(kind, 0) + 1
        names.append(f"{kind}-{counts[kind]:04d}")
    return Cluster.of(
        names,
        [row[2] for row in rows],
        [row[3] for row in rows],
        [row[1] for row in rows],
        [row[0] for row in rows],
    )


def proportional(
    types: Sequence[tuple[str, int, int, int, int]], size: int
) -> tuple[tuple[str, int, int, int, int], ...]:
    """Return the same types with `size` nodes in all, by largest remainders."""
    total = sum(row[4] for row in types)
    shares = [size * row[4] / total for row in types]
    counts = [int(share) for share in shares]
    by_remainder = sorted(range(len(types)), key=lambda k: (counts[k] - shares[k], k))
    for k in by_remainder[: size - sum(counts)]:
        counts[k] += 1
    return tuple((*row[:4], count) for row, count in zip(types, counts, strict=True) if count)


@cache
def trace_of_classes() -> Tasks:
    """Return the Default workload, one row per task, grouped by class."""
    rows = list(chain.from_iterable(repeat(row[:4], row[4]) for row in TASK_CLASSES))
    return Tasks.of(
        [f"default-{k:04d}" for k in range(len(rows))],
        [row[2] for row in rows],
        [row[3] for row in rows],
        [row[0] for row in rows],
        [row[1] for row in rows],
        [""] * len(rows),
    )


@cache
def target_of_classes() -> TargetWorkload:
    """Return the Default workload as the target of a problem."""
    return TargetWorkload.from_tasks(trace_of_classes())


def that_fit(tasks: Tasks, cluster: Cluster) -> Tasks:
    """Return the tasks that at least one empty node could take."""
    fits = [any(node.takes(task) for node in cluster.types) for task in tasks.classes]
    return tasks.take(np.flatnonzero(np.array(fits)[tasks.class_of]).tolist())
