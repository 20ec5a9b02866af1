"""The convex program of a decision: a bound that is one, prices that mean what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_elastic import elastic_problems

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.presets import day
from optgap.models.elastic.snapshot import Choices, Snapshot
from optgap.solvers.elastic.relaxation import relaxed
from optgap.solvers.elastic.snapshot import solve


def decision(problem: ElasticProblem, share: float = 1.0) -> Snapshot:
    jobs = problem.jobs
    limit = share * problem.power_limit_w
    return Snapshot.of(Choices.of(problem), problem, jobs.of_class, jobs.iterations, limit)


@settings(max_examples=25)
@given(problem=elastic_problems(max_jobs=4, max_clocks=3), share=st.floats(0.2, 1.5))
def test_the_bound_is_below_the_exact_decision_and_prices_are_not_negative(
    problem: ElasticProblem, share: float
) -> None:
    snapshot = decision(problem, share)
    found, exact = relaxed(snapshot), solve(snapshot)
    assert found.bound <= exact.objective
    assert found.gpu_s >= 0
    assert found.watt_s >= 0
    assert found.watt_s == 0 or math.isfinite(snapshot.limit_w)


@pytest.fixture(scope="module")
def forty() -> Snapshot:
    return decision(day(seed=0, size=40, gpus=64, pool="v100"))


def test_it_proves_what_the_prices_of_the_exact_method_prove(forty: Snapshot) -> None:
    found = relaxed(forty)
    λ, μ = solve(forty).prices  # of another program, which knows no solver
    c = forty.choices
    total = -λ * forty.gpus - μ * forty.limit_w
    for k, left in zip(forty.of_class.tolist(), forty.remaining.tolist(), strict=True):
        z = slice(int(c.first[k]), int(c.first[k + 1]))
        cost = left * c.time_s[z] + λ * c.gpus[z] + μ * c.watts[z]
        total += min(float(cost.min()), forty.wait_s)
    assert found.bound == pytest.approx(total, rel=1e-6)


def test_a_watt_more_saves_no_more_than_its_price(forty: Snapshot) -> None:
    found = relaxed(forty)
    assert found.watt_s > 0
    more = Snapshot(forty.choices, forty.of_class, forty.remaining, forty.gpus,
                    forty.limit_w + 100.0, forty.wait_s)  # fmt: skip
    saved = found.bound - relaxed(more).bound
    assert 0 < saved <= 100 * found.watt_s * (1 + 1e-4)


def test_certainty_costs_the_more_the_more_of_it(forty: Snapshot) -> None:
    rng = np.random.default_rng(0)
    errors = 0.05 * forty.choices.watts * rng.standard_normal((10, 1)) / 3
    bounds = [relaxed(forty, errors, z).bound for z in (0.0, 0.5, 1.5, 3.0)]
    assert bounds[0] == pytest.approx(relaxed(forty).bound, rel=1e-9)
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0]
    # all powers off together: the cone is a limit that is lower by as much
    spread = float(np.linalg.norm(errors[:, 0]) / forty.choices.watts[0])
    lower = Snapshot(forty.choices, forty.of_class, forty.remaining, forty.gpus,
                     forty.limit_w / (1 + 3.0 * spread), forty.wait_s)  # fmt: skip
    assert bounds[-1] == pytest.approx(relaxed(lower).bound, rel=1e-6)
    assert bounds[-1] <= solve(lower).objective
