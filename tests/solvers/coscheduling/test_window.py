"""The policy that solves its window exactly, and what each start cost."""

from __future__ import annotations

import pytest
from exhaustive_coscheduling import exhaustive
from hypothesis import given
from strategies_coscheduling import coscheduling_problems, three_jobs
from trust.agreement import examples

from optgap.heuristics.coscheduling.regret import regrets
from optgap.models.coscheduling import Application, CoschedulingProblem, CoschedulingSolution, Mode
from optgap.models.coscheduling.presets import stream, synthetic
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.registry import FAMILIES
from optgap.solvers.coscheduling.oracle import oracle

POLICIES = FAMILIES["coscheduling"].policies
exact_window = POLICIES["exact-window"].load()


def value(problem: CoschedulingProblem, outcome: Outcome) -> float:
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return problem.evaluate(outcome.solution).objective


@examples(15)
@given(problem=coscheduling_problems(goals=("energy", "makespan"), max_jobs=4))
def test_with_everything_there_at_once_it_is_optimal(problem: CoschedulingProblem) -> None:
    truth = value(problem, exhaustive(problem, limits=Limits(), seed=0))
    found = value(problem, exact_window(problem, limits=Limits(), seed=0))
    assert found >= truth - 1e-6 * max(1.0, truth)
    if not problem.releases:
        assert found == pytest.approx(truth, rel=2e-6)


def test_a_plan_is_made_anew_only_when_a_job_comes() -> None:
    whole = exact_window(synthetic(seed=0), limits=Limits(), seed=0)
    assert whole.info["plans"] == 1
    few = exact_window(stream(seed=0, size=6), limits=Limits(), seed=0)
    assert 1 < few.info["plans"] <= 6  # type: ignore[operator]
    assert few.info["plans_not_proven"] == 0


def test_a_window_of_one_job_takes_each_at_its_cheapest() -> None:
    problem = three_jobs(numa=1)
    outcome = exact_window(problem, limits=Limits(), seed=0, window=1)
    best = oracle(problem, limits=Limits(), seed=0)
    assert value(problem, outcome) == pytest.approx(value(problem, best))


def test_a_longer_window_is_worth_something_here() -> None:
    problem = synthetic(seed=1)
    short = value(problem, exact_window(problem, limits=Limits(), seed=0, window=3))
    assert short > value(problem, exact_window(problem, limits=Limits(), seed=0)) * 1.001


@pytest.mark.parametrize("params", [{"window": -1}, {"units": 0.0}])
def test_a_parameter_out_of_range_is_named(params: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(params))):
        exact_window(three_jobs(), limits=Limits(), seed=0, **params)


@examples(12)
@given(problem=coscheduling_problems(goals=("energy", "makespan", "edp")))
def test_what_the_starts_cost_adds_up_to_the_way_from_the_bound(
    problem: CoschedulingProblem,
) -> None:
    solution = POLICIES["marble"].load()(problem, limits=Limits(), seed=0).solution
    found = regrets(problem, solution)
    objective = problem.evaluate(solution).objective
    truth = value(problem, exhaustive(problem, limits=Limits(), seed=0))
    assert len(found) == len(problem)
    assert all(regret.cost >= 0 for regret in found)
    # the bound at time 0 is at most the optimum, and the costs lead from it to the schedule
    assert sum(regret.cost for regret in found) >= (objective - truth) * (1 - 1e-6) - 1e-4 * truth


def test_an_optimal_schedule_has_next_to_no_regrets_and_a_bad_choice_is_named() -> None:
    problem = three_jobs()
    best = oracle(problem, limits=Limits(), seed=0).solution
    assert isinstance(best, CoschedulingSolution)
    bad = POLICIES["sequential_max_gpu"].load()(problem, limits=Limits(), seed=0).solution
    good, poor = regrets(problem, best), regrets(problem, bad)
    assert sum(r.cost for r in good) < 0.2 * sum(r.cost for r in poor)
    x = next(r for r in poor if r.subject == "X")
    assert (x.chosen, x.better) == ("on 4 GPUs", "on 2 GPUs")


def test_a_single_job_on_its_only_count_costs_nothing() -> None:
    problem = CoschedulingProblem.of([Application("a", (Mode(1, 5.0, 100.0),))])
    solution = POLICIES["ecosched"].load()(problem, limits=Limits(), seed=0).solution
    assert [r.cost for r in regrets(problem, solution)] == [0.0]
