"""Presets of queueing: the paper's workload, small problems for exact methods, and files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.measured import a100_iterations
from optgap.models.performance.saved import read_fits
from optgap.models.queueing.fits import refit
from optgap.models.queueing.problem import Goal, Placement, QueueingProblem
from optgap.models.queueing.readers import Unusable, read_jobs
from optgap.models.queueing.workload import (
    Arrivals,
    Corr,
    Estimate,
    Large,
    Patience,
    draw,
)
from optgap.models.spec import Entry, entries

CLUSTER = {"nodes": 8, "gpus_per_node": 8, "placement": "node", "goal": "mean_wait"}
WORKLOAD = {
    "corr": "none",
    "arrivals": "poisson",
    "large": "16",
    "patience": "inf",
    "patience_s": 3600.0,
    "estimate": "exact",
    "sigma": 0.5,
}


def _presets() -> dict[str, Callable[..., Any]]:
    return {"mixed": mixed, "measured": measured, "small": small}


PRESETS = entries(
    _presets,
    Entry(
        "mixed",
        "the paper's mix of synthetic jobs on 8 x 8 GPUs (size = jobs, 200; 1000 in the paper)",
        params={"size": 200, "load": 0.9, **WORKLOAD, **CLUSTER},
        seeded=True,
    ),
    Entry(
        "measured",
        "the same stream of trainings whose iterations were timed on A100 (size = jobs, 200)",
        params={"size": 200, "load": 0.9, **CLUSTER},
        seeded=True,
    ),
    Entry(
        "small",
        "a dozen such jobs on 2 x 8 GPUs under high load (size = jobs, 12): exact methods",
        params={"size": 12, "load": 2.0, "arrivals": "poisson", **CLUSTER, "nodes": 2},
        seeded=True,
    ),
)


def mixed(
    *,
    seed: int,
    size: int = 200,
    load: float = 0.9,
    corr: Corr = "none",
    arrivals: Arrivals = "poisson",
    large: Large = "16",
    patience: Patience = "inf",
    patience_s: float = 3600.0,
    estimate: Estimate = "exact",
    sigma: float = 0.5,
    nodes: int = 8,
    gpus_per_node: int = 8,
    placement: Placement = "node",
    goal: Goal = "mean_wait",
) -> QueueingProblem:
    """Return `size` jobs of the paper's mix, drawn from `seed`; parameters as for `workload.draw`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    if min(nodes, gpus_per_node) < 1:
        raise InputError("--set", "nodes, gpus_per_node", (nodes, gpus_per_node), "at least 1")
    jobs = draw(
        np.random.default_rng(seed),
        size,
        nodes * gpus_per_node,
        load=load,
        corr=corr,
        arrivals=arrivals,
        large=large,
        patience=patience,
        patience_s=patience_s,
        estimate=estimate,
        sigma=sigma,
    )
    return QueueingProblem.of(
        jobs,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        placement=placement,
        goal=goal,
        name=f"synthetic stream, {size} jobs, seed {seed}",
        origin="synthetic, after the paper's Section IV-A",
    )


@wraps(mixed, assigned=())
def measured(*, seed: int, size: int = 200, **params: Any) -> QueueingProblem:
    """Make `mixed` with durations = iterations × T_iter of five networks fitted on A100."""
    fitted = refit(mixed(seed=seed, size=size, **params), [a100_iterations()], seed)
    origin = "fits of public measurements; stream synthetic, after the paper's Section IV-A"
    return replace(fitted, name=f"measured stream, {size} jobs, seed {seed}", origin=origin)


small = partial(mixed, size=12, load=2.0, nodes=2)


def from_csv(
    jobs: str | os.PathLike[str],
    model: Any = None,
    *,
    seed: int = 0,
    nodes: int = 8,
    gpus_per_node: int = 8,
    placement: Placement = "node",
    goal: Goal = "mean_wait",
    unusable: Unusable = "auto",
    first: int = 0,
    strict: bool = True,
) -> QueueingProblem:
    """Return a problem of a table of jobs or an archive's log; `seed` is not used.

    ``.swf`` is the Standard Workload Format; a CSV file with the columns
    ``timestamp,duration,num_gpus`` is taken for Philly's, any other for the tidy table
    ``job,arrival_s,duration_s,gpus[,type,family,iterations,estimate_s,patience_s,batch]``. Names
    may end in ``.gz``. With `model`, a fit of powerflow-throughput, jobs that tell family, batch
    and iterations last as long as these take.

    Parameters
    ----------
    unusable: treatment of jobs that cannot run (no run time, no GPUs, more than the
        cluster has): ``refuse`` them, ``drop`` and count them, or ``auto``: drop from logs,
        refuse in the tidy table.
    first: take this many jobs by arrival; 0 for all.
    strict: whether to refuse values that look like another unit. Default True.

    Raises
    ------
    InputError: with file, row and column of a value that cannot be used.
    """
    if first < 0:
        raise InputError("--set", "first", first, "a number of jobs, or 0 for all")
    if min(nodes, gpus_per_node) < 1:
        raise InputError("--set", "nodes, gpus_per_node", (nodes, gpus_per_node), "at least 1")
    fits = read_fits(model)
    stream, notices = read_jobs(jobs, nodes * gpus_per_node, unusable, strict, bool(fits))
    if 0 < first < len(stream):
        notices.append(f"the first {first} of {len(stream)} jobs")
        stream = stream.take(np.arange(first))
    base = os.path.basename(os.fspath(jobs))
    if not len(stream):
        raise InputError(str(jobs), "", NoQuote("no jobs"), "at least one job")
    problem = QueueingProblem.of(
        stream,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        placement=placement,
        goal=goal,
        name=base.split(".")[0],
        origin=base,
        notices=tuple(notices),
        source=str(jobs),
    )
    if fits and stream.batches is None:
        expected = "columns family, batch and iterations, for durations by a fit"
        raise InputError(str(jobs), "", NoQuote("no job that tells a batch"), expected)
    return refit(problem, fits) if fits else problem
