from __future__ import annotations

import math
from typing import Any

import pytest
from conftest import TWO_NODES, two_nodes_problem

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
NOTHING = PlacementSolution.of([None] * 4)
LEAST_W = 2 * 150 + 2 * 30 + 120 + 15
"""Node a: both GPUs and its package active; node b idle."""

EXACT = Runnable(Entry("made", "", kind="exact"), "made")
OWN = Runnable(Entry("custom", ""), "my.py:policy", own=True)


def judged(problem: PlacementProblem, outcome: Outcome, runnable: Runnable = EXACT) -> Result:
    return refereed(problem, runnable, outcome, 0.5, seed=7)


FOUND, PROVEN, BOUND = Status.FEASIBLE, Status.OPTIMAL, Status.BOUND_ONLY
CUT = Termination.TIME_LIMIT
IDLE_W = 150.0
"""With no task placed: four GPUs at 30 W, two packages at 15 W."""


GAP, NOT_PROVEN = (LEAST_W - 400) / 400, "not counted as optimal"


@pytest.mark.parametrize(
    ("outcome", "status", "objective", "bound", "gap", "message"),
    [
        (Outcome(TOGETHER, FOUND), FOUND, LEAST_W, None, None, ""),
        (Outcome(TOGETHER, FOUND, claimed=LEAST_W * (1 + 1e-9)), FOUND, LEAST_W, None, None, ""),
        (Outcome(TOGETHER, FOUND, bound=400.0), FOUND, LEAST_W, 400.0, GAP, ""),
        # rounding does not make a bound better than a solution
        (Outcome(TOGETHER, PROVEN, bound=LEAST_W * (1 + 1e-10)), PROVEN, LEAST_W, LEAST_W, 0.0, ""),
        # nothing is optimal without a bound that proves it
        (Outcome(TOGETHER, PROVEN), FOUND, LEAST_W, None, None, NOT_PROVEN),
        (Outcome(TOGETHER, PROVEN, bound=400.0), FOUND, LEAST_W, 400.0, GAP, NOT_PROVEN),
        (Outcome(TOGETHER, PROVEN, bound=math.nan), FOUND, LEAST_W, None, None, NOT_PROVEN),
        (Outcome(TOGETHER, PROVEN, bound=-math.inf), FOUND, LEAST_W, None, None, NOT_PROVEN),
        # a partial solution has no gap to a bound for everything
        (Outcome(NOTHING, PROVEN, bound=float(LEAST_W)), FOUND, IDLE_W, None, None, "only part"),
        # a bound outlives a search without an incumbent, one that is no number is none
        (Outcome(None, BOUND, CUT, bound=400.0, bound_by="LP"), BOUND, None, 400.0, None, ""),
        (Outcome(None, BOUND, bound=-math.inf), Status.NO_SOLUTION, None, None, None, ""),
    ],
)
def test_a_result_says_what_the_referee_found(
    outcome: Outcome,
    status: Status,
    objective: float | None,
    bound: float | None,
    gap: float | None,
    message: str,
) -> None:
    result = judged(TWO_NODES, outcome)
    assert (result.status, result.termination) == (status, outcome.termination)
    assert (result.objective, result.bound) == (objective, bound)
    assert result.gap == pytest.approx(gap)
    assert result.bound_by == (None if bound is None else outcome.bound_by or "made")
    assert message in result.message
    assert (result.method, result.kind, result.seconds, result.seed) == ("made", "exact", 0.5, 7)
    assert result.versions["optgap"] == optgap.__version__


def test_what_a_method_tells_never_replaces_what_the_referee_found() -> None:
    told = {"power_w": 1.0, "columns": 3}
    result = judged(TWO_NODES, Outcome(TOGETHER, FOUND, info=told))
    assert result.metrics["power_w"] == LEAST_W
    assert result.metrics["columns"] == 3


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(TOGETHER, FOUND, claimed=500.0), "claims an objective of 500"),
        (Outcome(OVERFULL, FOUND), "GPU capacity"),
        (Outcome(TOGETHER, FOUND, bound=LEAST_W + 1.0), "better than the solution"),
        (Outcome(TOGETHER, FOUND, bound=LEAST_W * (1 + 1e-5)), "better than the solution"),
        (Outcome(None, PROVEN), "no solution"),
        (Outcome(None, FOUND), "no solution"),
        (Outcome(TOGETHER, Status.INFEASIBLE), "says infeasible"),
    ],
)
def test_what_contradicts_the_referee_is_our_fault(outcome: Outcome, said: str) -> None:
    with pytest.raises(RefereeError, match=said):
        judged(TWO_NODES, outcome)


def test_a_broken_constraint_of_a_users_policy_is_bad_input() -> None:
    with pytest.raises(InputError, match=r"my\.py:policy: a GPU 0: found GPU capacity.*1500"):
        judged(TWO_NODES, Outcome(OVERFULL, FOUND), OWN)


def test_a_maximised_partial_solution_has_a_gap() -> None:
    problem = two_nodes_problem(goal="accepted_gpu")
    result = judged(problem, Outcome(NOTHING, FOUND, bound=2000.0))
    assert (result.objective, result.bound, result.gap) == (0.0, 2000.0, 1.0)
    with pytest.raises(RefereeError, match="better than the solution"):
        judged(problem, Outcome(TOGETHER, FOUND, bound=1999.0))


def test_only_the_bound_is_kept_when_only_it_was_asked_for() -> None:
    entry: Any = FakeEntry(Outcome(TOGETHER, Status.OPTIMAL, bound=float(LEAST_W), info={"n": 1}))
    result = execute(TWO_NODES, Runnable(entry, "fake"), Limits(), 0, bound_only=True)
    assert (result.status, result.objective, result.solution) == (Status.BOUND_ONLY, None, None)
    assert (result.bound, dict(result.metrics)) == (LEAST_W, {"n": 1})


class FakeEntry:
    """Stands in for an `Entry` whose function returns a ready outcome, or raises."""

    name, kind, goals = "fake", "exact", ()

    def __init__(self, outcome: Outcome | Exception) -> None:
        self.outcome = outcome

    def load(self) -> Any:
        def function(problem: Any, *, limits: Limits, seed: int, **_: Any) -> Outcome:
            if isinstance(self.outcome, Exception):
                raise self.outcome
            return self.outcome

        return function


def test_a_users_policy_that_raises_is_bad_input() -> None:
    entry: Any = FakeEntry(ZeroDivisionError("division by zero"))
    with pytest.raises(InputError, match="ZeroDivisionError"):
        execute(TWO_NODES, Runnable(entry, "mine", own=True), Limits(), 0)
    with pytest.raises(ZeroDivisionError):
        execute(TWO_NODES, Runnable(entry, "ours"), Limits(), 0)


def test_a_method_that_does_not_treat_the_objective_says_so() -> None:
    entry = Entry("narrow", "", kind="exact", goals=("fragmentation",))
    with pytest.raises(
        InputError, match="a problem whose objective is power, expected one of frag"
    ):
        execute(TWO_NODES, Runnable(entry, "narrow"), Limits(), 0)


def test_generating_is_reproducible_and_typed() -> None:
    first, second = (optgap.generate("placement", "small", seed=3, size=5) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert first.to_json() != optgap.generate("placement", "small", seed=4, size=5).to_json()
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
