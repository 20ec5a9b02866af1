from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_elastic import elastic_problems, two_jobs

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.presets import day
from optgap.models.elastic.snapshot import Choices, Snapshot, horizon
from optgap.solvers.elastic.relaxation import relaxed
from optgap.solvers.elastic.snapshot import solve


def snapshot_of(problem: ElasticProblem, wait: bool = True) -> Snapshot:
    choices = Choices.of(problem)
    remaining = problem.jobs.iterations
    wait_s = horizon(problem, problem.jobs.of_class, remaining) if wait else math.inf
    return Snapshot(
        choices, problem.jobs.of_class, remaining, problem.gpus, problem.power_limit_w, wait_s
    )


def brute(snapshot: Snapshot) -> float:
    """The best of all combinations."""
    first = snapshot.choices.first
    options = [[-1, *range(first[c], first[c + 1])] for c in snapshot.of_class]
    values = [
        snapshot.objective(np.array(pick))
        for pick in itertools.product(*options)
        if snapshot.feasible(np.array(pick))
    ]
    return min(values, default=math.inf)


@settings(max_examples=40)
@given(problem=elastic_problems(max_jobs=3, max_clocks=2), wait=st.booleans())
def test_dynamic_programming_and_brute_force_agree(problem: ElasticProblem, wait: bool) -> None:
    snapshot = snapshot_of(problem, wait)
    truth = brute(snapshot)
    found = solve(snapshot)
    assert found.proven
    if math.isinf(truth):
        assert found.chosen is None
        return
    assert found.objective == pytest.approx(truth)
    assert found.bound <= truth * (1 + 1e-9)
    assert found.chosen is not None
    assert snapshot.feasible(found.chosen)
    assert relaxed(snapshot).bound <= truth * (1 + 1e-9)


@pytest.mark.parametrize(("limit", "best"), [(480.0, 1070), (360.0, 1460)])
def test_the_optimum_of_the_written_out_decision(limit: float, best: float) -> None:
    assert solve(snapshot_of(two_jobs(limit), wait=False)).objective == pytest.approx(best)


def test_the_optimum_of_the_wide_decision() -> None:
    snapshot = snapshot_of(two_jobs(660.0, gpus=8, per_node=8), wait=False)
    assert solve(snapshot).objective == pytest.approx(875)


def test_a_thousand_jobs_are_proven_and_the_relaxation_is_close() -> None:
    problem = day(seed=0, size=1000, gpus=1024, pool="v100")
    found = solve(snapshot_of(problem), gap=1e-6)
    assert found.proven
    assert found.gap <= 1e-6
    few = day(seed=0, size=40, gpus=64, pool="v100")
    snapshot = snapshot_of(few)
    bound, exact = relaxed(snapshot).bound, solve(snapshot, gap=1e-7)
    assert 0.9 * exact.objective < bound <= exact.objective * (1 + 1e-9)
    later = Snapshot(
        snapshot.choices, snapshot.of_class[:30], snapshot.remaining[:30] / 2, snapshot.gpus,
        snapshot.limit_w, snapshot.wait_s,
    )  # fmt: skip
    assert relaxed(later).bound <= solve(later, gap=1e-7).objective * (1 + 1e-9)
