"""The convex program of a decision: a bound that is one, prices that mean what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import elastic_problems, two_jobs
from trust.agreement import examples

import optgap
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.presets import day
from optgap.models.elastic.snapshot import Choices, Snapshot
from optgap.models.errors import InputError
from optgap.models.result import Status
from optgap.solvers.elastic.relaxation import relaxed
from optgap.solvers.elastic.snapshot import solve


def decision(problem: ElasticProblem, share: float = 1.0) -> Snapshot:
    jobs = problem.jobs
    limit = share * problem.power_allowed_w
    return Snapshot.of(Choices.of(problem), problem, jobs.of_class, jobs.iterations, limit)


@examples(15)
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


def test_solve_runs_the_program_of_one_decision() -> None:
    problem = day(seed=0, size=40, gpus=64, pool="v100")
    result = optgap.solve(problem, "relaxation")
    assert result.status is Status.BOUND_ONLY
    assert result.bound <= optgap.run(problem, "work-value").objective
    found = relaxed(decision(problem))
    assert f"another GPU saves {found.gpu_s:,.0f} s" in result.message
    assert f"another kW {1000 * found.watt_s:,.0f} s" in result.message
    assert "over 1 jobs" in optgap.solve(problem, "relaxation", at_s=0.0).message
    with pytest.raises(InputError, match="after the first submission"):
        optgap.solve(problem, "relaxation", at_s=-5.0)


@pytest.mark.parametrize(
    ("limit", "size", "best"), [(480.0, 4, 1070), (360.0, 4, 1460), (660.0, 8, 875)]
)
def test_the_optimum_of_the_written_out_decisions(limit: float, size: int, best: float) -> None:
    snapshot = decision(two_jobs(limit, gpus=size, per_node=size))
    assert solve(replace(snapshot, wait_s=math.inf)).objective == pytest.approx(best)


def test_a_thousand_jobs_are_proven_and_the_relaxation_is_close(forty: Snapshot) -> None:
    found = solve(decision(day(seed=0, size=1000, gpus=1024, pool="v100")), gap=1e-6)
    assert found.proven
    assert found.bound >= found.objective * (1 - 1e-6)
    later = replace(forty, of_class=forty.of_class[:30], remaining=forty.remaining[:30] / 2)
    for snapshot, near in ((forty, 0.9), (later, 0.0)):
        bound, exact = relaxed(snapshot).bound, solve(snapshot, gap=1e-7).objective
        assert near * exact < bound <= exact * (1 + 1e-9)
