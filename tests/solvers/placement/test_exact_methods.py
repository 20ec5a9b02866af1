"""The exact methods agree with each other and with brute force, and do not overstate."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from slow_placement import exhaustive
from trust.agreement import examples

from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, PlacementObjective, PlacementProblem
from optgap.models.placement.presets import small
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends.linear import Solved
from optgap.solvers.placement import METHODS, auto
from optgap.solvers.placement.exact import search
from optgap.solvers.placement.exact.pooled import bound_pooled
from optgap.solvers.placement.exact.search import exact
from optgap.solvers.placement.milp import milp
from tests.conftest import two_nodes_problem
from tests.strategies import GOALS, placement_problems, tasks_of

EXACT: dict[str, Any] = {
    "exact": exact,
    "milp-highs": milp,
    "milp-cbc": partial(milp, backend="cbc"),
}


def close(value: float) -> float:
    return 2e-6 * max(1.0, abs(value))


def assert_honest(problem: PlacementProblem, outcome: Outcome) -> None:
    """The referee agrees with the solution, its objective and what is called optimal."""
    assert (outcome.bound is None) or outcome.bound_by or outcome.status is Status.INFEASIBLE
    if outcome.solution is None:
        assert outcome.status not in (Status.OPTIMAL, Status.FEASIBLE)
        return
    assert outcome.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert outcome.claimed is not None
    assert not problem.check(outcome.solution)
    objective = problem.evaluate(outcome.solution).objective
    assert outcome.claimed == pytest.approx(objective, abs=close(objective))
    sense = problem.objective.described.sense
    if sense == "min":
        assert problem.serves_all(outcome.solution)
    if outcome.bound is not None:
        excess = outcome.bound - objective if sense == "min" else objective - outcome.bound
        assert excess <= close(objective)
    if outcome.status is Status.OPTIMAL:
        assert outcome.termination is Termination.COMPLETED
        assert outcome.bound == pytest.approx(objective, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_methods_agree_with_brute_force(name: str, goal: str) -> None:
    @examples(5 if name == "milp-cbc" else 9)
    @given(placement_problems(goals=(goal,), max_nodes=3, max_tasks=6))  # type: ignore[arg-type]
    def agrees(problem: PlacementProblem) -> None:
        oracle = exhaustive(problem)
        assert_honest(problem, oracle)
        outcome = EXACT[name](problem, limits=Limits(), seed=0)
        assert_honest(problem, outcome)
        assert outcome.status is oracle.status
        if oracle.claimed is None:
            assert outcome.message
            return
        assert outcome.claimed == pytest.approx(oracle.claimed, abs=close(oracle.claimed))
        pooled = bound_pooled(problem, limits=Limits(), seed=0, gap=0.0)
        assert pooled.bound is not None
        if goal == "accepted_gpu":
            assert pooled.bound >= oracle.claimed
        else:
            assert pooled.bound <= oracle.claimed + close(oracle.claimed)

    agrees()


def test_the_search_itself_needs_neither_a_start_nor_a_bound() -> None:
    # on small problems greedy and pooling alone often have the proof already
    @examples(10)
    @given(placement_problems(max_nodes=3, max_tasks=6))
    def agrees(problem: PlacementProblem) -> None:
        oracle = exhaustive(problem)
        outcome = exact(problem, limits=Limits(), seed=0)
        assert_honest(problem, outcome)
        assert outcome.status is oracle.status
        if oracle.claimed is not None:
            assert outcome.claimed == pytest.approx(oracle.claimed, abs=close(oracle.claimed))

    with (
        mock.patch.object(search, "greedy", return_value=None),
        mock.patch.object(search.ExactSearch, "_pool", return_value=""),
    ):
        agrees()


@pytest.mark.parametrize("goal", GOALS)
def test_the_textbook_and_the_counted_formulation_agree_beyond_brute_force(goal: str) -> None:
    @examples(4)
    @given(placement_problems(goals=(goal,), max_nodes=3, max_tasks=10))  # type: ignore[arg-type]
    def agree(problem: PlacementProblem) -> None:
        one = exact(problem, limits=Limits(60), seed=0)
        other = milp(problem, limits=Limits(60), seed=0)
        assert_honest(problem, one)
        assert_honest(problem, other)
        if Status.FEASIBLE in (one.status, other.status):
            return  # out of time: nothing to compare
        assert one.status is other.status
        if one.claimed is not None:
            assert other.claimed == pytest.approx(one.claimed, rel=2e-5, abs=2e-5)

    agree()


def test_two_nodes_by_hand(two_nodes: PlacementProblem) -> None:
    # 2 GPUs and 1 package at full power on one node, 2 GPUs and 1 package idle on the other
    best = 2 * 150 + 120 + 2 * 30 + 15
    found = [method(two_nodes, limits=Limits(), seed=0) for method in EXACT.values()]
    for outcome in (*found, exhaustive(two_nodes)):
        assert outcome.status is Status.OPTIMAL
        assert outcome.claimed == best
        assert_honest(two_nodes, outcome)


def test_what_does_not_fit_is_left_out_where_that_is_the_question() -> None:
    # three tasks of two GPUs beside 2 GPUs of small ones; two nodes with two GPUs
    problem = two_nodes_problem(extra=3, goal="accepted_gpu")
    for method in EXACT.values():
        outcome = method(problem, limits=Limits(), seed=0)
        assert outcome.status is Status.OPTIMAL
        assert outcome.claimed == 4000
        assert_honest(problem, outcome)


@pytest.mark.parametrize("goal", GOALS)
def test_eight_nodes_and_thirty_tasks_are_proven(goal: str) -> None:
    problem = small(seed=2, size=30, goal=goal)  # type: ignore[arg-type]
    outcome = exact(problem, limits=Limits(120), seed=0)
    assert_honest(problem, outcome)
    assert outcome.status is Status.OPTIMAL


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("goal", GOALS)
def test_a_time_limit_is_kept_and_owned_up_to(name: str, goal: str) -> None:
    problem = small(seed=0, size=45, goal=goal)  # type: ignore[arg-type]
    for limit in (0.0, 0.15):
        outcome = EXACT[name](problem, limits=Limits(limit), seed=0)
        assert_honest(problem, outcome)
        if outcome.status is not Status.OPTIMAL:
            assert outcome.termination is Termination.TIME_LIMIT


def test_progress_narrows() -> None:
    told: list[tuple[str, float | None, float | None]] = []
    limits = Limits(20, progress=lambda *row: told.append(row))
    problem = small(seed=1, size=30, goal="weighted")
    exact(problem, limits=limits, seed=0)
    bounds = [bound for _, _, bound in told if bound is not None]
    assert told[0][0] == "greedy"
    assert bounds


def infeasible(rows: list[tuple[int, int, int, int, str]], **nodes: Any) -> PlacementProblem:
    cluster = Cluster.of(
        ["a", "b"],
        nodes.get("cpu", [8000, 8000]),
        nodes.get("memory", [4096, 4096]),
        nodes.get("gpus", [2, 2]),
        nodes.get("models", ["G2", "T4"]),
    )
    return PlacementProblem.of(cluster, tasks_of(rows))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (infeasible([(0, 0, 2, 1000, "P100")]), "arrival 0. fits no node.*2 G2 GPUs: not of P100"),
        (
            infeasible([(9000, 0, 1, 500, "G2")], cpu=[8000, 9000]),
            "G2 GPUs: short by 1000 milli-CPU; .*2 T4 GPUs: not of G2",
        ),
        (infeasible([(0, 0, 4, 1000, "T4")], gpus=[4, 2]), "2 T4 GPUs: short by 2 GPUs"),
        (infeasible([(0, 3000, 1, 1, "T4")], memory=[4096, 1024]), "2 T4 GPUs: short by 1976 MiB"),
        (infeasible([(6000, 0, 0, 0, "")] * 3), "18,000 milli-CPU asked for, 16,000 there"),
        (infeasible([(0, 3000, 0, 0, "")] * 3), "9,000 MiB asked for, 8,192 there"),
        (infeasible([(0, 0, 1, 900, "")] * 5), "4.5 GPUs asked for, 4 there"),
        (infeasible([(0, 0, 1, 600, "")] * 5), "5 GPUs .more than half.*has 4"),
        (infeasible([(0, 0, 1, 500, "T4")] * 5), "GPUs of T4: 2.5 GPUs asked for, 2 there"),
        (infeasible([(5000, 0, 0, 0, "")] * 3), "no placement of all of them exists"),
    ],
)
def test_infeasible_problems_say_why(problem: PlacementProblem, words: str) -> None:
    assert exhaustive(problem).status is Status.INFEASIBLE
    for method in (exact, milp):
        outcome = method(problem, limits=Limits(), seed=0)
        assert outcome.status is Status.INFEASIBLE
        assert re.search(words, outcome.message), outcome.message
        assert "\n" not in outcome.message


def test_a_solver_that_denies_a_placement_at_hand_is_not_believed(
    two_nodes: PlacementProblem,
) -> None:
    denial = Solved(Status.INFEASIBLE, Termination.COMPLETED, solver="liar")
    with (
        mock.patch.object(search, "solve_pooled", return_value=denial),
        pytest.raises(RefereeError, match="liar"),
    ):
        exact(two_nodes, limits=Limits(), seed=0)


def test_a_solver_that_fails_leaves_the_greedy_placement_and_its_own_words() -> None:
    problem = small(seed=2, size=20, goal="power")
    failed = Solved(Status.ERROR, Termination.ERROR, solver="HiGHS", message="out of luck")
    with (
        mock.patch.object(search.ExactSearch, "_pool", return_value=""),
        mock.patch.object(search, "solve", return_value=failed),
    ):
        outcome = exact(problem, limits=Limits(), seed=0)
    assert_honest(problem, outcome)
    assert outcome.status is Status.FEASIBLE
    assert outcome.termination is Termination.ERROR
    assert "out of luck" in outcome.message


@pytest.mark.parametrize(
    ("method", "nodes", "words"),
    [
        (milp, 41, "at most 40 nodes for milp"),
        (exact, 201, "at most 200 nodes"),
    ],
)
def test_problems_too_large_are_refused_with_a_way_out(method: Any, nodes: int, words: str) -> None:
    row = (8000, 4096, 1, "T4")
    cluster = Cluster.of([f"n{k}" for k in range(nodes)], *([row[i]] * nodes for i in range(4)))
    problem = PlacementProblem.of(cluster, tasks_of([(1, 1, 1, 100, "")] * 7))
    with pytest.raises(InputError, match=f"{words}.*patterns takes any size"):
        method(problem, limits=Limits(), seed=0)


@pytest.mark.parametrize("backend", ["cpsat", "gurobi"])
def test_the_textbook_formulation_refuses_what_takes_no_linear_program(backend: str) -> None:
    with pytest.raises(InputError, match=f"{backend}.*highs, cbc"):
        milp(small(seed=0, size=5, goal="fragmentation"), limits=Limits(), seed=0, backend=backend)


def test_small_problems_are_solved_exactly_by_default() -> None:
    assert auto(small(seed=0)) == "exact"
    assert METHODS["exact"].load() is exact
    assert METHODS["exact"].kind == "exact"


def test_more_tasks_than_a_node_may_carry() -> None:
    cluster = Cluster.of(["a", "b"], [9000, 9000], [0, 0], [0, 1], ["", "T4"])
    problem = PlacementProblem.of(
        cluster, tasks_of([(1, 0, 0, 0, "")] * 1500), objective=PlacementObjective("power")
    )
    outcome = exact(problem, limits=Limits(60), seed=0)
    assert_honest(problem, outcome)
    assert outcome.status is Status.OPTIMAL
