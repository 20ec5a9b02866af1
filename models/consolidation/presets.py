"""Presets of consolidation: synthetic tasks, the paper's testbed, and tasks over time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from optgap.models.consolidation import recorded
from optgap.models.consolidation.cluster import Server
from optgap.models.consolidation.csvin import V100, from_csv
from optgap.models.consolidation.fits import refit
from optgap.models.consolidation.problem import (
    MOST_TASKS,
    Capacity,
    ConsolidationProblem,
    Gang,
    Goal,
    Rules,
)
from optgap.models.consolidation.tasks import Task
from optgap.models.consolidation.traces import PAI, PHILLY, Workload, draw, utilisation
from optgap.models.errors import InputError, one_of
from optgap.models.performance.measured import gv100_power, gv100_time
from optgap.models.spec import Entry, defaults, entries

__all__ = ["PRESETS", "cats_testbed", "from_csv", "mixed", "pai", "philly"]

KAPPAS = (1.1, 1.2, 1.3, 1.5)
WIDTHS, SHARES = (1, 2, 4, 8), (0.7, 0.15, 0.1, 0.05)


def mixed(
    *,
    seed: int,
    size: int = 32,
    servers: int = 0,
    gpus_per_server: int = 8,
    server_static_w: float = 150.0,
    capacity: Capacity = "mean",
    gang: Gang = "server",
    samples: int = 12,
    kappas: int = 4,
) -> ConsolidationProblem:
    """Return `size` tasks of 1 to 16 GB and 10 to 60 % on one to eight GPUs each, mostly one.

    Parameters
    ----------
    servers: 0 for enough that every task can have GPUs of its own.
    samples: length of the series.
    kappas: how many different κ there are: 4 for 1.1, 1.2, 1.3, 1.5; others are spread
        evenly from 1.05 to 1.5; 0 for one of each task's own.

    Raises
    ------
    InputError: for sizes out of range.
    """
    if not 1 <= size <= MOST_TASKS:
        raise InputError("size", "", size, f"1 to {MOST_TASKS} tasks")
    _at_least(1, samples=samples, gpus_per_server=gpus_per_server)
    _at_least(0, kappas=kappas, servers=servers)
    rng = np.random.default_rng(seed)
    choices = np.array(KAPPAS) if kappas == 4 else np.linspace(1.05, 1.5, max(kappas, 1))
    tasks = []
    for k in range(size):
        own = float(rng.choice(choices)) if kappas else round(float(rng.uniform(1.05, 1.5)), 4)
        tasks.append(
            Task(
                f"t{k + 1}",
                round(float(np.exp(rng.uniform(0, np.log(16)))), 2),
                min(int(rng.choice(WIDTHS, p=SHARES)), gpus_per_server),
                own,
                0.0,
                0.0,
                utilisation(rng, samples, float(rng.uniform(10, 60)), 0.4),
            )
        )
    needed = sum(task.gpus for task in tasks)
    count = servers or -(-needed // gpus_per_server) + 1
    return ConsolidationProblem.of(
        [V100],
        [Server((0,) * gpus_per_server, server_static_w)] * count,
        tasks,
        rules=Rules(capacity, gang=gang),
        name=f"mixed, {size} tasks, seed {seed}",
        origin="synthetic",
    )


def measured(*, seed: int, size: int = 12, **mix: Any) -> ConsolidationProblem:
    """Return `mixed`, with its parameters, on fits of public measurements by application.

    Raises
    ------
    InputError: for sizes out of range.
    """
    made = refit(mixed(seed=seed, size=size, **mix), [gv100_power(), gv100_time()])
    kinds = tuple(replace(kind, name="GV100") for kind in made.kinds)
    name = f"measured, {size} tasks, seed {seed}"
    origin = "fits of public measurements; tasks synthetic"
    return replace(made, kinds=kinds, name=name, origin=origin)


TABLE_4 = (
    (0, 45.84, 6.28),
    (1, 44.44, 6.30),
    (2, 40.00, 2.20),
    (3, 46.00, 1.80),
    (20, 49.00, 3.90),
    (21, 47.00, 1.60),
    (22, 45.00, 2.20),
    (23, 44.00, 3.50),
    (500, 45.84, 6.28),
    (500, 44.44, 6.30),
    (500, 40.00, 2.20),
    (500, 46.00, 1.80),
    (520, 49.00, 3.90),
    (522, 47.00, 1.60),
)
"""The paper's Table 4: start in s, mean utilisation in %, memory in GB of t1 to t14."""
TABLE_3 = (16.0, 16.0, 32.0, 32.0, 16.0, 32.0)
"""DRAM of the testbed's GPUs, GB."""
STAGE_S = 300.0
"""Run time of a task of the testbed alone, s; the paper does not say."""


def cats_testbed(
    *,
    seed: int,
    stage: int = 1,
    goal: Goal = "power",
    capacity: Capacity = "mean",
) -> ConsolidationProblem:
    """Return the testbed's tasks: means of Table 4, with Gaussian series around them.

    The paper states neither run times nor variances. Here they are 300 s, and a standard
    deviation of 15 points with one sample per second.

    Raises
    ------
    InputError: for a stage other than 0 (both), 1 or 2.
    """
    if stage not in (0, 1, 2):
        raise InputError("--set", "stage", stage, "1 or 2, or 0 for both")
    rng = np.random.default_rng(seed)
    tasks = []
    for k, (start, mean, memory) in enumerate(TABLE_4):
        noise = rng.normal(0, 15, int(STAGE_S))
        series = np.clip(mean + noise - noise.mean(), 0, 100)
        series = np.round(np.clip(series + mean - series.mean(), 0, 100), 3)
        if stage in (0, 1 + (start >= 500)):
            tasks.append(Task(f"t{k + 1}", memory, 1, 1.2, float(start), STAGE_S, series))
    kinds = [replace(V100, memory_gb=16.0), V100]
    gpus = tuple(int(memory > 16) for memory in TABLE_3)
    return ConsolidationProblem.of(
        kinds,
        [Server(gpus)],
        tasks,
        goal=goal,
        rules=Rules(capacity),
        period_s=1.0,
        name=f"CATS testbed, {'both stages' if stage == 0 else f'stage {stage}'}",
        origin="CATS, Tables 3 and 4; series synthetic",
    )


def over_time(
    title: str,
    workload: Workload,
    *,
    seed: int,
    size: int,
    present: float,
    servers: int = 0,
    gpus_per_server: int = 8,
    server_static_w: float = 0.0,
    capacity: Capacity = "none",
    gang: Gang = "server",
    contention: float = 1.0,
    waiting: bool = False,
    migration: bool = True,
    series: str = "synthetic",
    data: str = "",
) -> ConsolidationProblem:
    """Return tasks that arrive over time.

    Parameters
    ----------
    title, workload: name of the problem, and the workload of its tasks.
    present: number of tasks present at a time, on average.
    servers, gpus_per_server, server_static_w: the servers (0 for enough of them), and the
        power of an active server, W.
    capacity, gang, contention, waiting, migration: the rules.
    series: ``synthetic``, or ``philly`` for recorded ones out of `data`, and its jobs where the
        folder has them.
    data: the folder with the public files; by default the one that ``OPTGAP_DATA`` names.

    Raises
    ------
    InputError: for sizes out of range, or recorded series that are not there.
    """
    width = gpus_per_server
    if not 1 <= size <= MOST_TASKS:
        raise InputError("size", "", size, f"1 to {MOST_TASKS} tasks")
    _at_least(1, gpus_per_server=width)
    _at_least(0, servers=servers)
    if not 0 < present <= MOST_TASKS:
        raise InputError("--set", "present", present, "a positive number of tasks")
    pool, jobs = None, None
    origin = "synthetic"
    if series not in ("synthetic", "philly"):
        raise InputError("--set", "series", series, one_of(("synthetic", "philly")))
    if series == "philly":
        folder = data or os.environ.get("OPTGAP_DATA", ".")
        pool, jobs = recorded.series(folder), recorded.jobs(folder)
        origin = f"synthetic, with recorded series of {series}"
        if jobs is not None:
            origin = "jobs and series recorded in Philly, memory synthetic"
    rng = np.random.default_rng(seed)
    tasks = draw(
        workload,
        size,
        rng,
        present=present,
        period_s=60.0,
        most_gpus=width,
        pool=pool,
        jobs=jobs,
    )
    count = servers or -(-_most_wanted(tasks) // width) + 4
    return ConsolidationProblem.of(
        [V100],
        [Server((0,) * width, server_static_w)] * count,
        tasks,
        goal="energy",
        rules=Rules(
            capacity,
            gang=gang,
            contention=contention,
            waiting=waiting,
            migration=migration,
        ),
        period_s=60.0,
        name=f"{title}, {size} tasks, seed {seed}",
        origin=origin,
    )


def _at_least(least: int, **values: int) -> None:
    """Raise InputError, naming the parameter, for a number below `least`."""
    for name, value in values.items():
        if value < least:
            raise InputError("--set", name, value, f"at least {least}")


pai = partial(over_time, "PAI", PAI, size=5000, present=150.0)
philly = partial(over_time, "Philly", PHILLY, size=2000, present=60.0)


def _most_wanted(tasks: list[Task]) -> int:
    """GPUs that are wanted at once, at most, if each task had its own and lasted 1.5·e."""
    changes = [(t.submit_s, t.gpus) for t in tasks]
    changes += [(t.submit_s + 1.5 * t.duration_s, -t.gpus) for t in tasks]
    level = most = 0
    for _, change in sorted(changes):
        level += change
        most = max(most, level)
    return most


def _presets() -> dict[str, Callable[..., Any]]:
    return {"mixed": mixed, "measured": measured, "testbed": cats_testbed, "pai": pai}


PRESETS = entries(
    _presets,
    Entry(
        "mixed",
        "synthetic tasks (size, 32) of mixed κ and GPU count that are all present",
        params=defaults(mixed),
        seeded=True,
    ),
    Entry(
        "measured",
        "such tasks of 15 applications whose power and run time were measured over a GV100's clock",
        params={"size": 12, "servers": 0, "capacity": "mean", "gang": "server"},
        seeded=True,
    ),
    Entry(
        "testbed",
        "the paper's 14 tasks (Table 4) on its six V100 (Table 3); stage 1, 2 or 0 for both",
        params=defaults(cats_testbed),
        seeded=True,
    ),
    Entry(
        "pai",
        "tasks (size, 5,000) over time, drawn from the published distributions of PAI",
        params=defaults(pai),
        seeded=True,
    ),
)
