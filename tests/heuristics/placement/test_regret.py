from __future__ import annotations

import enumeration
import pytest
from hypothesis import given, settings
from strategies import placement_problems

import optgap
from optgap.heuristics.placement.regret import regrets
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution

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


@settings(max_examples=40)
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


@settings(max_examples=20)
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
