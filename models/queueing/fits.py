"""Fitted iteration times (``optgap.fit/1``) in a problem: how long jobs of iterations take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.performance.fitted import ENERGY, TIME, Iterations, iterations
from optgap.models.performance.saved import FittedParameters
from optgap.models.queueing.arrays import FloatArray, floats, integers
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.problem import QueueingProblem

SERVES: Mapping[str, tuple[str, ...]] = {TIME: (), ENERGY: ()}
"""The models that a problem takes, and the parameters that it needs of them."""


def refit(
    problem: QueueingProblem, fits: Sequence[FittedParameters], seed: int = 0
) -> QueueingProblem:
    """Return the problem with durations = iterations × T_iter on the GPUs that a job asks for.

    Jobs say what they train by family and batch. Where none does, each is given a model and a
    batch from `seed` that were measured on about as many GPUs, and iterations that last about as
    long as it did; jobs on GPUs of which no row tells keep their durations.

    Raises
    ------
    InputError: for another model, a job of a family that was not fitted, or a fit whose rows tell
        nothing of any job's GPUs.
    """
    times, fit = times_of(fits), fits[0]
    jobs, used = problem.jobs, "durations are iterations × T_iter of Eq. 1-5"
    if jobs.batches is None:
        jobs = dealt(jobs, times, problem.gpus_per_node, seed)
        used += "; jobs take measured models and batches in turn"
        kept = jobs.families.count("")
        if kept:
            used += f", but {kept} of {len(jobs)} keep their durations: no row tells of their GPUs"
    timed = with_durations(jobs, times, problem.gpus_per_node, fit.source)
    return replace(problem, jobs=timed, fits=(fit.using(used),))


def times_of(fits: Sequence[FittedParameters]) -> dict[str, Iterations]:
    """Return the iteration times by group.

    Raises
    ------
    InputError: for several fits, or one of another model.
    """
    if len(fits) != 1:
        found = NoQuote(f"{len(fits)} fits")
        raise InputError("models", "", found, f"one fit of {TIME}, by application")
    fits[0].require(SERVES)
    return iterations(fits[0])


def with_durations(
    jobs: Jobs, times: Mapping[str, Iterations], gpus_per_node: int, source: str
) -> Jobs:
    """Return the jobs; those with a batch last as long as their iterations at the top frequency.

    Raises
    ------
    InputError: for a family that was not fitted.
    """
    if jobs.batches is None:
        return jobs
    seconds = np.array(jobs.duration_s)
    for k in np.flatnonzero(jobs.batches > 0).tolist():
        if jobs.families[k] not in times:
            where = f"job {jobs.names[k]}, family"
            raise InputError(source, where, jobs.families[k], one_of(times))
        item = times[jobs.families[k]]
        gpus, batch = int(jobs.gpus[k]), int(jobs.batches[k])
        where = f"job {jobs.names[k]}"
        per_iteration = item.seconds(gpus, batch, item.top_mhz, gpus_per_node, where)
        seconds[k] = float(jobs.iterations[k] * per_iteration)
    known = jobs.estimate_s == jobs.duration_s
    estimate: FloatArray = floats(np.where(known, seconds, jobs.estimate_s))
    return replace(jobs, duration_s=floats(seconds), estimate_s=estimate)


def dealt(jobs: Jobs, times: Mapping[str, Iterations], gpus_per_node: int, seed: int) -> Jobs:
    """Return the jobs with a family, a batch and iterations each, about as long as before."""
    rng, names = np.random.default_rng(seed), list(times)
    families, batches, counts = [], [], []
    for k in range(len(jobs)):
        gpus = int(jobs.gpus[k])
        able = [n for n in names if times[n].gpus[0] <= gpus <= times[n].gpus[1]] or names
        item = times[able[int(rng.integers(len(able)))]]
        levels = item.batches or item.local_batch
        batch = max(1, round(gpus * levels[int(rng.integers(len(levels)))]))
        if not item.told(gpus, batch, gpus_per_node):
            families.append("")
            batches.append(0)
            counts.append(jobs.duration_s[k] * gpus)
            continue
        per_iteration = float(item.seconds(gpus, batch, item.top_mhz, gpus_per_node))
        families.append(item.name)
        batches.append(batch)
        counts.append(max(1.0, round(jobs.duration_s[k] / per_iteration)))
    if not any(batches):
        raise times[names[0]].untold("any", max(times[names[0]].local_batch), gpus_per_node)
    return replace(
        jobs,
        families=tuple(families),
        batches=integers(batches),
        iterations=floats(counts),
    )
