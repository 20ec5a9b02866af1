"""Where tasks cannot all be served: a group that shows it, and none of it superfluous."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import enumeration
import pytest
from conftest import Cli, two_nodes_problem
from hypothesis import given, settings
from strategies import placement_problems

import optgap
from optgap.conflicts import conflict
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem


@settings(max_examples=40)
@given(problem=placement_problems(goals=("power",), max_nodes=2, max_tasks=5, max_gpus=2))
def test_the_group_is_impossible_and_irreducible(problem: PlacementProblem) -> None:
    found = conflict(problem)
    possible = enumeration.optimum(problem) is not None
    assert (found is None) == possible
    if found is None:
        return
    assert found.irreducible
    assert enumeration.optimum(problem.subset(found.tasks)) is None
    if len(found.tasks) > 1:
        for part in combinations(found.tasks, len(found.tasks) - 1):
            assert enumeration.optimum(problem.subset(part)) is not None


def test_three_tasks_for_two_pairs_of_gpus() -> None:
    found = conflict(two_nodes_problem(extra=3))
    assert found is not None
    assert found.irreducible
    assert "without any one of them the others can" in str(found)


def test_no_time_leaves_the_whole_group() -> None:
    found = conflict(two_nodes_problem(extra=3), limits=Limits(time_limit=1e-9))
    assert found is None or not found.irreducible


def test_too_many_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="at most 60"):
        conflict(two_nodes_problem(extra=70))


def test_the_command_line_names_the_group(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "problem.json"
    optgap.save(two_nodes_problem(extra=3), path)
    answer = cli("solve", str(path), "--conflict")
    assert answer.code == 0
    assert "cannot all be served" in answer.out
    assert "(t4)" in answer.out
