from __future__ import annotations

from dataclasses import replace

import enumeration
import numpy as np
import pytest
from hypothesis import given
from strategies import placement_problems, tasks_of, timed_placement_problems
from trust.agreement import examples

import optgap
from optgap.heuristics.placement import POLICIES
from optgap.heuristics.placement.regret import regrets
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, PlacementProblem, PlacementSolution

Choice = tuple[int, tuple[int, ...]] | None


def placements(solution: PlacementSolution) -> list[Choice]:
    return [
        (int(n), solution.gpus(k)) if n >= 0 else None for k, n in enumerate(solution.node.tolist())
    ]


def value(problem: PlacementProblem, chosen: list[Choice]) -> float:
    rest: list[Choice] = [None] * (len(problem.tasks) - len(chosen))
    return problem.evaluate(PlacementSolution.of([*chosen, *rest])).objective


def judged_by_the_referee(
    problem: PlacementProblem, solution: PlacementSolution
) -> dict[int, float]:
    """For every placed arrival, its rise of the objective less the least one that was possible."""
    made = placements(solution)
    rest: list[Choice] = [None] * len(made)
    found = {}
    for k, choice in enumerate(made):
        if choice is None:
            continue
        open_then = [
            c
            for c in enumeration.choices(problem, k)
            if c and not problem.check(PlacementSolution.of([*made[:k], c, *rest[k + 1 :]]))
        ]
        best = min(value(problem, [*made[:k], c]) for c in open_then)
        found[k] = value(problem, made[: k + 1]) - best
    return found


@examples(13)
@given(placement_problems(max_tasks=4))
def test_a_regret_is_what_the_referee_finds(problem: PlacementProblem) -> None:
    if problem.objective.described.sense == "max":
        return
    for policy in ("random", "firstfit"):
        solution = optgap.run(problem, policy).solution
        assert solution is not None
        found = {int(r.time): r.cost for r in regrets(problem, solution)}
        wanted = judged_by_the_referee(problem, solution)
        scale = 1 + abs(problem.evaluate(solution).objective)
        for k, cost in wanted.items():
            assert found.get(k, 0.0) == pytest.approx(cost, abs=1e-7 * scale)
        assert set(found) <= set(wanted)


@examples(12)
@given(placement_problems(max_tasks=4))
def test_greedy_exact_regrets_nothing(problem: PlacementProblem) -> None:
    solution = optgap.run(problem, "greedy-exact").solution
    assert solution is not None
    assert regrets(problem, solution) == []


def test_a_regret_names_task_nodes_and_rises() -> None:
    problem = optgap.generate("placement", "small", seed=0)
    solution = optgap.run(problem, "fgd", limits=Limits()).solution
    assert solution is not None
    first = max(regrets(problem, solution), key=lambda regret: regret.cost)
    assert first.subject in problem.tasks.names
    assert " GPU " in first.chosen
    assert first.chosen.endswith(" W")
    assert first.cost > 0


@given(timed_placement_problems(goals=("energy", "mean_weighted"), max_nodes=3, max_tasks=8))
def test_over_time_greedy_exact_regrets_nothing_and_others_what_they_pay(
    problem: PlacementProblem,
) -> None:
    outcome = POLICIES["greedy-exact"].load()(problem, limits=Limits(), seed=0)
    assert regrets(problem, outcome.solution) == []
    other = POLICIES["random"].load()(problem, limits=Limits(), seed=0)
    assert all(regret.cost > 0 for regret in regrets(problem, other.solution))


def test_over_time_a_regret_lasts_as_long_as_its_task() -> None:
    nodes = Cluster.of(["a", "b"], [32_000] * 2, [100] * 2, [1, 1], ["T4", "G2"])
    still = tasks_of([(1000, 0, 1, 1000, "")] * 2)
    times = {"submit_s": np.array([7.0, 20.0]), "duration_s": np.array([10.0, 10.0])}
    problem = PlacementProblem.of(nodes, replace(still, **times))
    start = np.array([7.0, 20.0])
    # first the G2, for 10 s at 120 W where the T4 was open at 60 W; the T4 is open again at 20 s
    solution = PlacementSolution.of_arrays(np.array([1, 0]), np.array([1, 1]), start)
    found = regrets(problem, solution)
    assert [(r.time, r.subject, r.cost) for r in found] == [(7.0, "task-0", 600.0)]
