from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import elastic_problems, rigid, two_jobs
from trust.agreement import examples
from trust.agreement import outcome_of as solved
from trust.agreement import value_of as value

import optgap
from optgap.models.elastic import ElasticProblem, Overhead
from optgap.models.elastic.presets import day, small, tiny
from optgap.models.elastic.snapshot import Choices, Snapshot
from optgap.models.errors import InputError
from optgap.models.result import Status
from optgap.registry import FAMILIES
from optgap.solvers.elastic import METHODS, auto, auto_bound
from optgap.solvers.elastic.area import shortest_first
from optgap.solvers.elastic.relaxation import relaxed
from optgap.solvers.elastic.snapshot import solve

POLICIES = FAMILIES["elastic"].policies

BOUNDS = [name for name, entry in METHODS.items() if entry.kind == "bound"]


def bound(problem: ElasticProblem, method: str, **params: Any) -> float:
    value = solved(problem, method, **params).bound
    assert value is not None
    return value


@examples(6)
@given(problem=elastic_problems(max_jobs=4), data=st.data())
def test_bounds_are_below_hindsight_and_every_policy(
    problem: ElasticProblem, data: st.DataObject
) -> None:
    """Starts are free, or take a little time or much."""
    starts = (problem.overhead, Overhead(2.0, 1.0, 0.0), Overhead(9.0, 0.5))
    problem = replace(problem, overhead=data.draw(st.sampled_from(starts)))
    found = solved(problem, "offline", runs=6, rounds=20)
    assert "not proven" in found.message or found.status is Status.OPTIMAL
    least = min(value(problem, solved(problem, policy)) for policy in POLICIES)
    least = min(least, value(problem, found))
    bounds = {name: bound(problem, name) for name in (*BOUNDS, "exhaustive")}
    for name, proven in {**bounds, "offline": found.bound}.items():
        assert proven <= least * (1 + 1e-6), name


def test_hindsight_beats_every_policy_and_places_every_job() -> None:
    problem = small(seed=1, size=16, gpus=16)
    found = solved(problem, "offline", runs=60, rounds=60)
    made = value(problem, found)
    for name in ("elastic-srtf", "afs", "optimal-slowdown", "powerflow", "work-value"):
        assert made < value(problem, solved(problem, name)), name
    assert (found.solution.place >= 0).all()


def test_jobs_that_take_turns_on_one_gpu_go_by_length_with_a_restart_each() -> None:
    problem = rigid([(0, 30, 1), (0, 10, 1), (0, 20, 1)], 1, 1, Overhead(1.0, 1.0, 0.0))
    found = solved(problem, "offline", runs=5)
    assert value(problem, found) == pytest.approx(np.mean([12, 34, 66]))
    assert found.status is Status.OPTIMAL


def test_the_optimum_of_rigid_jobs_on_one_gpu_is_shortest_first() -> None:
    problem = rigid([(0, 100, 1), (0, 30, 1), (20, 5, 1)], gpus=1, per_node=1)
    ends = shortest_first(problem.jobs.submit_s, np.array([100.0, 30.0, 5.0]))
    assert ends.tolist() == [135, 35, 25]
    mean = (135 + 35 + 5) / 3
    assert value(problem, solved(problem, "exhaustive")) == pytest.approx(mean)
    assert bound(problem, "bound-prices") == pytest.approx(mean, rel=0.02)


def test_prices_come_within_15_percent_of_the_optimum_in_the_median() -> None:
    gaps = []
    for seed in range(5):
        problem = tiny(seed=seed, size=4)
        gaps.append(value(problem, solved(problem, "exhaustive")) / bound(problem, "bound-prices"))
    assert min(gaps) >= 1 - 1e-6
    assert float(np.median(gaps)) < 1.15


def test_the_method_goes_by_the_size_of_the_problem() -> None:
    assert auto(tiny(seed=0)) == auto_bound(tiny(seed=0)) == "exhaustive"
    assert (auto(small(seed=0)), auto_bound(small(seed=0))) == ("offline", "bound-prices")
    few = small(seed=0, size=6)
    assert (auto(few), auto_bound(few)) == ("offline", "exhaustive")  # restarts cost time
    with pytest.raises(InputError, match="at most 12 jobs"):
        solved(small(seed=0), "exhaustive")


# -- the convex program of a decision: a bound, and prices that mean what they say ---------


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
