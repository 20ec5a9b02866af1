"""Checks of a problem when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass, Jobs
from optgap.models.errors import InputError, NoQuote
from optgap.models.times import LATEST_S, SHORTEST_S

if TYPE_CHECKING:
    from optgap.models.elastic.problem import ElasticProblem

MOST_GPUS = 1 << 16
MOST_JOBS = 200_000
LARGEST = 1e15
POWER_SLACK = 1e-6
"""Relative: so little above the limit keeps it, for policies, bounds and the referee alike."""


def power_of_two(value: int) -> bool:
    """Tell whether `value` is 1, 2, 4, …"""
    return value > 0 and value & (value - 1) == 0


def check_cluster(source: str, gpus: int, per_node: int) -> None:
    for name, value in (("gpus", gpus), ("gpus_per_node", per_node)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_GPUS:
            raise InputError(source, f"field {name}", value, f"an integer from 1 to {MOST_GPUS}")
    if not power_of_two(per_node):
        raise InputError(source, "field gpus_per_node", per_node, "a power of two")
    if gpus % per_node:
        raise InputError(source, "field gpus", gpus, f"a multiple of gpus_per_node = {per_node}")


def clocks_of(source: str, values: Sequence[float]) -> Floats:
    clocks = np.array(values, dtype=np.float64)
    rising = clocks.ndim == 1 and len(clocks) and np.isfinite(clocks).all() and clocks[0] > 0
    if not rising or (np.diff(clocks) <= 0).any() or clocks[-1] >= LARGEST:
        raise InputError(source, "field frequencies_mhz", list(values), "positive, ascending MHz")
    clocks.flags.writeable = False
    return clocks


def class_of(source: str, k: int, item: JobClass, *, gpus: int, clocks: Floats) -> JobClass:
    """Return the class without counts above G; every entry must be a positive time and power."""
    where = f"field classes[{k}] ({item.label})"
    if not item.counts or list(item.counts) != sorted(set(item.counts)) or item.counts[0] < 1:
        raise InputError(source, f"{where}, counts", list(item.counts), "ascending GPU counts")
    for n in item.counts:
        if not power_of_two(n):
            raise InputError(source, f"{where}, counts", n, "a power of two")
    shape = (len(item.counts), len(clocks))
    for name, unit in (("time_s", "s"), ("power_w", "W")):
        table = np.asarray(getattr(item, name), dtype=np.float64)
        if table.shape != shape:
            found = NoQuote(f"shape {table.shape}")
            raise InputError(source, f"{where}, {name}", found, f"shape {shape}, counts × clocks")
        with np.errstate(invalid="ignore"):
            bad = ~((table > 1e-12) & (table < LARGEST))
        if bad.any():
            i, j = np.argwhere(bad)[0]
            place = f"{where}, {name} at {item.counts[i]} GPUs, {clocks[j]:g} MHz"
            raise InputError(source, place, float(table[i, j]), f"a positive number of {unit}")
    keep = [i for i, n in enumerate(item.counts) if n <= gpus and n <= item.batch]
    if not keep:
        found = NoQuote(f"at least {item.counts[0]} GPUs, batch {item.batch}")
        raise InputError(source, where, found, f"a count that {gpus} GPUs and the batch allow")
    return JobClass(
        item.model,
        item.batch,
        tuple(item.counts[i] for i in keep),
        np.asarray(item.time_s, dtype=np.float64)[keep],
        np.asarray(item.power_w, dtype=np.float64)[keep],
    )


def jobs_of(source: str, jobs: Jobs, classes: tuple[JobClass, ...]) -> tuple[Jobs, tuple[str, ...]]:
    """Return the jobs in order of submission, and what was changed."""
    if not 0 < len(jobs) <= MOST_JOBS:
        found = NoQuote(f"{len(jobs) or 'no'} jobs")
        raise InputError(source, "field jobs", found, f"1 to {MOST_JOBS} jobs")
    if len(set(jobs.names)) != len(jobs):
        twice = next(n for k, n in enumerate(jobs.names) if n in jobs.names[:k])
        raise InputError(source, "field jobs.name", twice, "a name of its own for each job")
    tests = (
        ("submit_s", (jobs.submit_s >= 0) & (jobs.submit_s < LATEST_S), "0 to below 1e12 s"),
        ("iterations", (jobs.iterations > 0) & (jobs.iterations < LARGEST), "above 0, below 1e15"),
        ("class", (jobs.of_class >= 0) & (jobs.of_class < len(classes)), "one of the classes"),
    )
    for key, good, expected in tests:
        if not good.all():
            k = int(np.argmin(good))
            found = {"submit_s": jobs.submit_s, "iterations": jobs.iterations}.get(
                key, jobs.of_class
            )[k]
            raise InputError(source, f"field jobs.{key}[{k}]", found.item(), expected)
    for k, (c, n) in enumerate(zip(jobs.of_class, jobs.requested, strict=True)):
        if int(n) not in classes[c].counts:
            allowed = ", ".join(map(str, classes[c].counts))
            where = f"field jobs.gpus[{k}] ({jobs.names[k]}, {classes[c].label})"
            raise InputError(source, where, int(n), f"one of {allowed}")
    if (np.diff(jobs.submit_s) >= 0).all():
        return jobs, ()
    order = np.argsort(jobs.submit_s, kind="stable")
    return jobs.only(order), ("jobs were not in order of submission; sorted",)


def check_lengths(source: str, problem: ElasticProblem) -> None:
    """Raise InputError for jobs that are done sooner than times can be told apart, or too late."""
    for j in np.flatnonzero(problem.least_jct_s < SHORTEST_S)[:1].tolist():
        found = NoQuote(f"{problem.least_jct_s[j]:g} s of work at its fastest")
        where = f"job {problem.jobs.names[j]}, iterations"
        raise InputError(source, where, found, f"at least {SHORTEST_S:g} s")
    slowest = np.where(np.isfinite(problem.time_s), problem.time_s, 0.0).max(axis=(1, 2))
    longest_s = problem.overhead.seconds(int(problem.counts[-1]), moved=True)
    spans = slowest[problem.jobs.of_class] * problem.jobs.iterations + longest_s
    last = float(problem.jobs.submit_s[-1]) + float(spans.sum())
    if not last < LATEST_S:
        found = NoQuote(f"jobs one after another, at their slowest, done at {last:g} s")
        raise InputError(source, "field jobs", found, f"an end before {LATEST_S:g} s")


def check_limit(source: str, problem: ElasticProblem) -> None:
    """Raise InputError for a power limit under which some class can never run."""
    least = np.where(np.isfinite(problem.time_s), problem.counted_w, np.inf).min(axis=(1, 2))
    for c in np.unique(problem.jobs.of_class):
        if least[c] > problem.power_allowed_w:
            found = NoQuote(f"{problem.power_limit_w:.12g} W (η = {problem.eta:g})")
            label = problem.classes[c].label
            where = f"power limit for {label}"
            needed = f"at least {least[c]:.12g} W, what it needs to run"
            raise InputError(source, where, found, needed)
