"""Queues told in another way: what must not change does not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_queueing import queueing_problems, stream
from trust.agreement import CLOSE, agree, examples, no_worse, optimum, solved

import optgap
from optgap.models.queueing import Jobs, QueueingProblem


def retold(
    problem: QueueingProblem, time: float = 1.0, later: float = 0.0, prefix: str = ""
) -> QueueingProblem:
    """The same jobs in another unit of time, some time later, under other names."""
    jobs = problem.jobs
    return replace(
        problem,
        jobs=Jobs.of(
            time * jobs.arrival_s + later,
            time * jobs.duration_s,
            jobs.gpus,
            names=[prefix + name for name in jobs.names],
            kinds=jobs.kinds,
            families=jobs.families,
            iterations=jobs.iterations,
            patience_s=time * jobs.patience_s,
            estimate_s=time * jobs.estimate_s,
        ),
    )


def together(one: QueueingProblem, two: QueueingProblem) -> QueueingProblem:
    """All jobs of both on the cluster of the first."""
    a, b = one.jobs, two.jobs
    jobs = Jobs.of(
        np.concatenate([a.arrival_s, b.arrival_s]),
        np.concatenate([a.duration_s, b.duration_s]),
        np.concatenate([a.gpus, b.gpus]),
        names=a.names + b.names,
        kinds=a.kinds + b.kinds,
        families=a.families + b.families,
        iterations=np.concatenate([a.iterations, b.iterations]),
        patience_s=np.concatenate([a.patience_s, b.patience_s]),
        estimate_s=np.concatenate([a.estimate_s, b.estimate_s]),
    )
    return replace(one, jobs=jobs)


@examples(6)
@given(problem=queueing_problems(), data=st.data())
def test_the_order_in_which_jobs_are_listed_does_not_matter(
    problem: QueueingProblem, data: st.DataObject
) -> None:
    jobs = problem.jobs
    order = data.draw(st.permutations(range(len(problem))))
    listed = Jobs.of(
        *(column[list(order)] for column in (jobs.arrival_s, jobs.duration_s, jobs.gpus))
    )
    for method in ("exact", "exhaustive"):
        agree(solved(problem, method), solved(replace(problem, jobs=listed), method))


@examples(6)
@given(problem=queueing_problems(), later=st.sampled_from((0.0, 1000.0)))
def test_seconds_in_another_unit_and_from_another_time_on(
    problem: QueueingProblem, later: float
) -> None:
    other = retold(problem, 16.0, later)
    for method in ("exact", "exhaustive"):
        agree(solved(problem, method), solved(other, method), 16.0)


@examples(6)
@given(problem=queueing_problems())
def test_every_gpu_cut_in_two(problem: QueueingProblem) -> None:
    jobs = replace(problem.jobs, gpus=2 * problem.jobs.gpus)
    finer = replace(problem, jobs=jobs, gpus_per_node=2 * problem.gpus_per_node)
    agree(solved(problem, "exact"), solved(finer, "exact"))


@examples(6)
@given(problem=queueing_problems(max_nodes=1))
def test_another_node_never_delays_anyone(problem: QueueingProblem) -> None:
    wider = replace(problem, nodes=problem.nodes + 1)
    no_worse(optimum(wider, "exhaustive"), optimum(problem, "exhaustive"))


@examples(6)
@given(problem=queueing_problems(max_jobs=3))
def test_placement_that_only_counts_is_never_worse(problem: QueueingProblem) -> None:
    counted, placed = (replace(problem, placement=p) for p in ("count", "node"))  # type: ignore[arg-type]
    no_worse(optimum(counted, "exhaustive"), optimum(placed, "exhaustive"))


@examples(6)
@given(
    one=queueing_problems(goals=("mean_wait", "mean_jct"), max_jobs=3),
    two=queueing_problems(goals=("mean_wait",), max_jobs=3),
)
def test_a_queue_that_runs_empty_is_two_queues(one: QueueingProblem, two: QueueingProblem) -> None:
    gpus = np.minimum(two.jobs.gpus, one.nodes * one.gpus_per_node)
    second = replace(one, jobs=replace(two.jobs, gpus=gpus))
    both = together(retold(one, prefix="a"), retold(second, later=4096.0, prefix="b"))
    parts = [solved(p, "exact").objective for p in (one, second)]
    assert None not in parts
    sizes = [len(one), len(second)]
    mean = math.fsum(n * float(v or 0.0) for n, v in zip(sizes, parts, strict=True)) / sum(sizes)
    assert solved(both, "exact").objective == pytest.approx(mean, rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize("policy", ["fifo", "sjf", "easy", "shortest", "shortest-gpu"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_run_split_where_the_queue_is_empty_is_the_same_run(policy: str, seed: int) -> None:
    """Until the last job of the first part ends nothing of the second has come."""
    first, second = stream(seed), stream(seed + 10)
    gpus = np.minimum(second.jobs.gpus, first.nodes * first.gpus_per_node)
    second = replace(first, jobs=replace(second.jobs, gpus=gpus))
    later = 2.0**24
    whole = together(retold(first, prefix="a"), retold(second, later=later, prefix="b"))
    runs = [optgap.run(p, policy).solution.start_s for p in (first, second, whole)]
    assert np.allclose(runs[2], np.concatenate([runs[0], later + runs[1]]), equal_nan=True)
