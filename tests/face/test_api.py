from __future__ import annotations

import math
from typing import Any

import pytest
from conftest import two_nodes_problem

import optgap
from optgap.api import execute, refereed
from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.result import Outcome, Result, Status, Termination
from optgap.models.spec import Entry
from optgap.registry import Runnable

TOGETHER = PlacementSolution.of([(0, [0]), (0, [1]), (0, [1]), (0, [])])
OVERFULL = PlacementSolution.of([(0, [0]), (0, [0]), (0, [1]), (0, [])])
LEAST_W = 2 * 150 + 2 * 30 + 120 + 15
"""Node a: both GPUs and its package active; node b idle."""

EXACT = Runnable(Entry("made", "", kind="exact"), "made")
OWN = Runnable(Entry("custom", ""), "my.py:policy", own=True)


def judged(problem: PlacementProblem, outcome: Outcome, runnable: Runnable = EXACT) -> Result:
    return refereed(problem, runnable, outcome, 0.5, 7)


def test_the_objective_is_the_referees(two_nodes: PlacementProblem) -> None:
    result = judged(two_nodes, Outcome(TOGETHER, Status.FEASIBLE))
    assert result.objective == LEAST_W
    assert result.metrics["power_w"] == LEAST_W
    assert (result.status, result.bound, result.gap) == (Status.FEASIBLE, None, None)
    assert (result.method, result.kind, result.seconds, result.seed) == ("made", "exact", 0.5, 7)
    assert result.versions["optgap"] == optgap.__version__


def test_what_a_method_tells_never_replaces_what_the_referee_found(
    two_nodes: PlacementProblem,
) -> None:
    told = {"power_w": 1.0, "columns": 3}
    result = judged(two_nodes, Outcome(TOGETHER, Status.FEASIBLE, info=told))
    assert result.metrics["power_w"] == LEAST_W
    assert result.metrics["columns"] == 3


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, math.inf])
def test_a_time_limit_is_a_positive_number(two_nodes: PlacementProblem, limit: float) -> None:
    with pytest.raises(InputError, match="a positive number of seconds"):
        optgap.run(two_nodes, "fgd", time_limit=limit)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_seed_is_a_whole_number(two_nodes: PlacementProblem, seed: Any) -> None:
    with pytest.raises(InputError, match="seed: found"):
        optgap.run(two_nodes, "random", seed=seed)
    with pytest.raises(InputError, match="seed: found"):
        optgap.generate("placement", "small", seed=seed)


def test_a_claim_that_differs_from_the_referee_is_our_fault(two_nodes: PlacementProblem) -> None:
    with pytest.raises(RefereeError, match="claims an objective of 500"):
        judged(two_nodes, Outcome(TOGETHER, Status.FEASIBLE, claimed=500.0))
    judged(two_nodes, Outcome(TOGETHER, Status.FEASIBLE, claimed=LEAST_W * (1 + 1e-9)))


def test_a_broken_constraint_is_our_fault_or_that_of_a_users_policy(
    two_nodes: PlacementProblem,
) -> None:
    outcome = Outcome(OVERFULL, Status.FEASIBLE)
    with pytest.raises(RefereeError, match="GPU capacity"):
        judged(two_nodes, outcome)
    with pytest.raises(InputError, match=r"my\.py:policy: a GPU 0: found GPU capacity.*1500"):
        judged(two_nodes, outcome, OWN)


@pytest.mark.parametrize("bound", [LEAST_W + 1.0, LEAST_W * (1 + 1e-5)])
def test_a_bound_better_than_a_full_solution_is_our_fault(
    two_nodes: PlacementProblem, bound: float
) -> None:
    with pytest.raises(RefereeError, match="better than the solution"):
        judged(two_nodes, Outcome(TOGETHER, Status.FEASIBLE, bound=bound))


def test_rounding_does_not_make_a_bound_better_than_a_solution(
    two_nodes: PlacementProblem,
) -> None:
    outcome = Outcome(TOGETHER, Status.OPTIMAL, bound=LEAST_W * (1 + 1e-10))
    result = judged(two_nodes, outcome)
    assert (result.bound, result.gap, result.status) == (LEAST_W, 0.0, Status.OPTIMAL)


@pytest.mark.parametrize("bound", [None, 400.0, math.nan, -math.inf])
def test_nothing_is_optimal_without_a_bound_that_proves_it(
    two_nodes: PlacementProblem, bound: float | None
) -> None:
    result = judged(two_nodes, Outcome(TOGETHER, Status.OPTIMAL, bound=bound))
    assert result.status is Status.FEASIBLE
    assert "not counted as optimal" in result.message
    assert result.bound == (400.0 if bound == 400.0 else None)


def test_the_gap_is_relative_to_the_bound(two_nodes: PlacementProblem) -> None:
    result = judged(two_nodes, Outcome(TOGETHER, Status.FEASIBLE, bound=400.0))
    assert result.gap == pytest.approx((LEAST_W - 400) / 400)


def test_a_partial_solution_has_no_gap_to_a_bound_for_everything(
    two_nodes: PlacementProblem,
) -> None:
    nothing = PlacementSolution.of([None] * 4)
    outcome = Outcome(nothing, Status.OPTIMAL, bound=float(LEAST_W))
    result = judged(two_nodes, outcome)
    assert result.objective == 150.0  # idle: 4 GPUs at 30 W, 2 packages at 15 W
    assert (result.bound, result.gap, result.status) == (None, None, Status.FEASIBLE)
    assert "only part" in result.message


def test_a_maximised_partial_solution_has_a_gap() -> None:
    problem = two_nodes_problem(goal="accepted_gpu")
    nothing = PlacementSolution.of([None] * 4)
    result = judged(problem, Outcome(nothing, Status.FEASIBLE, bound=2000.0))
    assert (result.objective, result.bound, result.gap) == (0.0, 2000.0, 1.0)
    with pytest.raises(RefereeError, match="better than the solution"):
        judged(problem, Outcome(TOGETHER, Status.FEASIBLE, bound=1999.0))


@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.FEASIBLE])
def test_a_solution_that_is_announced_must_be_there(
    two_nodes: PlacementProblem, status: Status
) -> None:
    with pytest.raises(RefereeError, match="no solution"):
        judged(two_nodes, Outcome(None, status))


def test_a_proof_of_infeasibility_excludes_a_solution(two_nodes: PlacementProblem) -> None:
    with pytest.raises(RefereeError, match="says infeasible"):
        judged(two_nodes, Outcome(TOGETHER, Status.INFEASIBLE))


def test_a_bound_outlives_a_search_without_an_incumbent(two_nodes: PlacementProblem) -> None:
    outcome = Outcome(None, Status.BOUND_ONLY, Termination.TIME_LIMIT, bound=400.0, bound_by="LP")
    result = judged(two_nodes, outcome)
    assert (result.status, result.termination) == (Status.BOUND_ONLY, Termination.TIME_LIMIT)
    assert (result.objective, result.bound, result.bound_by) == (None, 400.0, "LP")


def test_a_bound_that_is_no_number_is_none(two_nodes: PlacementProblem) -> None:
    result = judged(two_nodes, Outcome(None, Status.BOUND_ONLY, bound=-math.inf))
    assert (result.status, result.bound, result.bound_by) == (Status.NO_SOLUTION, None, None)


def test_only_the_bound_is_kept_when_only_it_was_asked_for(two_nodes: PlacementProblem) -> None:
    entry: Any = FakeEntry(Outcome(TOGETHER, Status.OPTIMAL, bound=float(LEAST_W), info={"n": 1}))
    result = execute(two_nodes, Runnable(entry, "fake"), Limits(), 0, bound_only=True)
    assert (result.status, result.objective, result.solution) == (Status.BOUND_ONLY, None, None)
    assert (result.bound, dict(result.metrics)) == (LEAST_W, {"n": 1})


class FakeEntry:
    """Stands in for an `Entry` whose function returns a ready outcome, or raises."""

    name, kind, goals = "fake", "exact", ()

    def __init__(self, outcome: Outcome | Exception) -> None:
        self.outcome = outcome

    def load(self) -> Any:
        def function(problem: Any, *, limits: Limits, seed: int) -> Outcome:
            if isinstance(self.outcome, Exception):
                raise self.outcome
            return self.outcome

        return function


def test_a_users_policy_that_raises_is_bad_input(two_nodes: PlacementProblem) -> None:
    entry: Any = FakeEntry(ZeroDivisionError("division by zero"))
    with pytest.raises(InputError, match="ZeroDivisionError"):
        execute(two_nodes, Runnable(entry, "mine", own=True), Limits(), 0)
    with pytest.raises(ZeroDivisionError):
        execute(two_nodes, Runnable(entry, "ours"), Limits(), 0)


def test_a_method_that_does_not_treat_the_objective_says_so(two_nodes: PlacementProblem) -> None:
    entry = Entry("narrow", "", kind="exact", goals=("fragmentation",))
    with pytest.raises(
        InputError, match="a problem whose objective is power, expected one of frag"
    ):
        execute(two_nodes, Runnable(entry, "narrow"), Limits(), 0)


def test_checking_names_what_is_broken(two_nodes: PlacementProblem) -> None:
    assert optgap.check(two_nodes, TOGETHER).feasible
    assert optgap.check(two_nodes, TOGETHER).serves_all
    verdict = optgap.check(two_nodes, OVERFULL)
    assert not verdict.feasible
    assert verdict.objective is None
    assert verdict.to_json()["violations"] == [
        {
            "constraint": "GPU capacity in milli-GPU (Cond. 3)",
            "where": "a GPU 0",
            "found": 1500,
            "limit": 1000,
        }
    ]


def test_generating_is_reproducible_and_typed() -> None:
    first, second = (optgap.generate("placement", "small", seed=3, size=5) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert optgap.generate("placement", "small(size=5)", seed=3).to_json() == first.to_json()
    with pytest.raises(InputError, match="preset: found 'x'"):
        optgap.generate("placement", "x")
    with pytest.raises(InputError, match="an integer"):
        optgap.generate("placement", "small", size="many")


def test_public_names_are_there_and_others_are_not() -> None:
    for name in optgap.__all__:
        assert getattr(optgap, name) is not None
        assert name in dir(optgap)
    with pytest.raises(AttributeError, match="nonsense"):
        optgap.nonsense  # noqa: B018


@pytest.mark.parametrize("name", ["plot_gaps", "plot_explanation", "compare_uncertain"])
def test_what_has_gone_names_what_to_use(name: str) -> None:
    with pytest.raises(AttributeError, match=f"optgap.{name} is gone; use "):
        getattr(optgap, name)
