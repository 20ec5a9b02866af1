from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exhaustive_queueing import exhaustive
from hypothesis import given
from strategies_queueing import GOALS, queueing_problems
from trust.agreement import examples

from optgap.heuristics.queueing import POLICIES
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.queueing.presets import mixed, small
from optgap.models.result import Outcome, Status
from optgap.solvers.queueing import METHODS, auto, auto_bound
from optgap.solvers.queueing.prices import priced
from optgap.solvers.queueing.widths import widths

BOUNDS = [name for name, entry in METHODS.items() if entry.kind == "bound"]


def solved(problem: QueueingProblem, method: str, **params: Any) -> Outcome:
    function = exhaustive if method == "exhaustive" else METHODS[method].load()
    outcome: Outcome = function(problem, limits=Limits(60), seed=0, **params)
    return outcome


def value(problem: QueueingProblem, outcome: Outcome) -> float:
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return problem.evaluate(outcome.solution).objective


@examples(10)
@given(problem=queueing_problems())
def test_bounds_are_below_the_optimum_and_policies_above(problem: QueueingProblem) -> None:
    truth = value(problem, solved(problem, "exhaustive"))
    slack = 1e-6 * max(1.0, truth)
    for method in BOUNDS:
        bound = solved(problem, method).bound
        assert bound <= truth + slack, method
    best = solved(problem, "exact")
    assert best.bound <= truth + slack
    assert value(problem, best) >= truth - slack
    if best.status is Status.OPTIMAL:
        assert value(problem, best) == pytest.approx(truth, rel=1e-6, abs=1e-6)
    for name, entry in POLICIES.items():
        found = entry.load()(problem, limits=Limits(), seed=0)
        assert value(problem, found) >= truth - slack, name


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("seed", range(2))
def test_a_dozen_jobs_are_proven_and_bounded_closely(goal: Any, seed: int) -> None:
    problem = small(seed=seed, goal=goal)
    best = solved(problem, "exact")
    assert best.status is Status.OPTIMAL
    truth = value(problem, best)
    near = solved(problem, "time-indexed").bound
    far = [solved(problem, method).bound for method in ("bound-prices", "bound-area")]
    assert near <= truth * (1 + 1e-9)
    assert goal == "makespan" or near >= 0.8 * truth  # the makespan keeps the bound of areas
    assert all(bound is not None and bound <= near * (1 + 1e-6) for bound in far)


@pytest.mark.parametrize("goal", GOALS)
def test_a_thousand_jobs_have_a_bound_that_gives_a_gap(goal: Any) -> None:
    problem = mixed(seed=0, size=1000, goal=goal)
    bound = solved(problem, "bound-prices", steps=60).bound
    assert bound > 0
    for name in ("fifo", "shortest", "easy"):
        found = POLICIES[name].load()(problem, limits=Limits(), seed=0)
        assert value(problem, found) >= bound


def test_wide_jobs_that_exclude_one_another_are_seen_by_the_closed_form() -> None:
    jobs = Jobs.of([0, 0, 0], [10, 10, 10], [5, 5, 5])
    problem = QueueingProblem.of(jobs, nodes=1, goal="makespan")
    assert solved(problem, "bound-area").bound == pytest.approx(30)
    assert len(widths(problem)) > 1


def test_sizes_that_divide_a_node_need_no_other_weights() -> None:
    assert len(widths(mixed(seed=0, size=100))) == 1


def test_the_least_priced_start_is_that_of_a_fine_search() -> None:
    rng = np.random.default_rng(5)
    edges = np.linspace(0.0, 100.0, 21)
    price = rng.uniform(0, 3, 20)
    total = 0.0
    release, duration = rng.uniform(0, 60, 8), rng.uniform(1, 40, 8)
    demand = rng.uniform(0.1, 1.0, 8)
    paid = np.concatenate([[0], np.cumsum(price * np.diff(edges))])
    for r, d, n in zip(release, duration, demand, strict=True):
        starts = np.linspace(r, r + 200, 400_001)
        ends = np.interp(starts + d, edges, paid) - np.interp(starts, edges, paid)
        total += float((starts - r + n * ends).min())
    found, _ = priced(release, duration, demand, edges, price, np.zeros(20))
    assert found == pytest.approx(total, abs=0.02)
    assert found <= total + 1e-9


def test_any_prices_give_a_valid_bound() -> None:
    problem = small(seed=1)
    truth = value(problem, solved(problem, "exact")) * len(problem)
    jobs, rng = problem.jobs, np.random.default_rng(2)
    edges = np.linspace(0.0, 80_000.0, 41)
    for scale in (0.1, 10, 300):
        price = rng.uniform(0, scale, 40)
        total, _ = priced(
            jobs.arrival_s.copy(),
            jobs.duration_s.copy(),
            jobs.gpus / problem.gpus,
            edges,
            price,
            np.zeros(40),
        )
        assert total - float((price * np.diff(edges)).sum()) <= truth + 1e-6


def test_patience_can_make_it_infeasible_and_is_kept_where_it_is_not() -> None:
    def problem(patience: float) -> QueueingProblem:
        return QueueingProblem.of(Jobs.of([0, 0], [10, 10], [8, 8], patience_s=patience), nodes=1)

    for method in ("exact", "exhaustive"):
        assert solved(problem(5.0), method).status is Status.INFEASIBLE
        assert solved(problem(10.0), method).status is Status.OPTIMAL


def test_sizes_decide_what_runs_and_too_many_jobs_are_refused() -> None:
    assert auto(small(seed=0)) == "exact"
    assert auto_bound(small(seed=0)) == "time-indexed"
    assert auto(mixed(seed=0)) == auto_bound(mixed(seed=0)) == "time-indexed"
    with pytest.raises(InputError, match="at most 2000 jobs"):
        solved(mixed(seed=0, size=2001), "exact")


@pytest.mark.parametrize("goal", GOALS)
def test_times_that_are_no_decimals_keep_bounds_below(goal: Any) -> None:
    for scale in (1 / 7, 1e-5 / 3, 1e5 / 9):
        jobs = Jobs.of(
            [0, scale, 2 * scale, 2.5 * scale],
            [3 * scale, 5 * scale, 7.7 * scale, scale],
            [2, 1, 3, 2],
        )
        problem = QueueingProblem.of(jobs, nodes=2, gpus_per_node=2, goal=goal)
        truth = value(problem, solved(problem, "exhaustive"))
        best = solved(problem, "exact")
        assert best.bound <= truth * (1 + 1e-6) + 1e-9
        assert value(problem, best) >= truth * (1 - 1e-9)
