"""Where tasks cannot all be served: a group that shows it, and none of it superfluous."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import enumeration
import numpy as np
import pytest
from conftest import Cli, two_nodes_problem
from exhaustive_consolidation import exhaustive
from hypothesis import given
from strategies import placement_problems, tasks_of
from strategies_consolidation import consolidation_problems
from trust.agreement import examples

import optgap
from optgap.explaining.conflicts import conflict
from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.problem import Rules
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.queueing import Jobs, QueueingProblem


def told(problem: Any, possible: Callable[[Any], bool]) -> None:
    """Raise unless a conflict is found just where there is one, and all of it is needed."""
    found = conflict(problem)
    assert (found is None) == possible(problem)
    if found is None:
        return
    assert found.irreducible
    assert not possible(problem.subset(found.tasks))
    if len(found.tasks) > 1:
        for part in combinations(found.tasks, len(found.tasks) - 1):
            assert possible(problem.subset(part))


@examples(13)
@given(problem=placement_problems(goals=("power",), max_nodes=2, max_tasks=5, max_gpus=2))
def test_a_group_of_placement_is_impossible_and_irreducible(problem: PlacementProblem) -> None:
    told(problem, lambda part: enumeration.optimum(part) is not None)


@examples(10)
@given(problem=consolidation_problems(capacities=("none", "mean", "peak"), even=True, max_tasks=4))
def test_a_group_of_consolidation_is_impossible_and_irreducible(
    problem: ConsolidationProblem,
) -> None:
    told(problem, lambda part: exhaustive(part).solution is not None)


def test_no_time_leaves_the_whole_group() -> None:
    found = conflict(two_nodes_problem(extra=3), limits=Limits(time_limit=1e-9))
    assert found is None or not found.irreducible


def test_too_many_tasks_are_refused() -> None:
    apart = two_nodes_problem()
    rows = [(0, 0, 1, 1000, "")] * 3 + [(0, 0, 1, 1, "")] * 70 + [(0, 0, 2, 1000, "")]
    assert not replace(apart, tasks=tasks_of(rows[:3] + rows[3:73])).why_not(range(73))
    with pytest.raises(InputError, match="at most 60"):
        conflict(replace(apart, tasks=tasks_of(rows[:3] + rows[3:73])))


def lanes(patience_s: float) -> QueueingProblem:
    """Three jobs for one node of two GPUs at once; the widest takes both."""
    jobs = Jobs.of([0, 0, 5], [100, 100, 10], [1, 2, 1], patience_s=patience_s)
    return QueueingProblem.of(jobs, nodes=1, gpus_per_node=2)


def test_jobs_that_wait_too_little_are_named_with_the_gpus_that_are_short() -> None:
    found = conflict(lanes(patience_s=20.0))
    assert found.irreducible
    assert len(found.tasks) == 2
    assert "short by 1 GPUs" in str(found)


def test_jobs_that_wait_for_ever_are_never_in_conflict() -> None:
    assert conflict(lanes(patience_s=float("inf"))) is None
    assert conflict(optgap.generate("coscheduling", size=4)) is None
    assert conflict(optgap.generate("elastic", "tiny", size=3)) is None


def test_thousands_of_tasks_are_told_what_is_short() -> None:
    found = conflict(two_nodes_problem(extra=500))
    assert found is not None
    assert "504 tasks cannot all be served" in str(found)
    assert "short by 998 GPUs" in str(found)


@pytest.mark.parametrize(
    ("memory_gb", "utils", "capacity", "words"),
    [
        ((20.0, 20.0, 20.0), (0, 0, 0), "none", "memory of GPUs: 60 GB asked for, 40 there"),
        ((9.0, 9.0, 9.0), (0, 0, 0), "none", "short by 1 GPUs"),
        ((1.0, 1.0, 1.0), (90, 90, 30), "mean", "short by 10 %"),
        ((6.0,) * 5, (0,) * 5, "none", "how they fit together"),
    ],
)
def test_consolidation_says_what_is_short(
    memory_gb: tuple[float, ...], utils: tuple[int, ...], capacity: Any, words: str
) -> None:
    size = 20.0 if memory_gb[0] == 20.0 else 16.0
    tasks = [
        Task(f"t{k}", d, util_percent=np.array([float(u)]))
        for k, (d, u) in enumerate(zip(memory_gb, utils, strict=True))
    ]
    problem = ConsolidationProblem.of(
        [GpuKind(memory_gb=size)], [Server((0, 0), 0.0)], tasks, rules=Rules(capacity)
    )
    found = conflict(problem)
    assert found is not None
    assert words in str(found)


def test_the_command_line_says_why_there_can_be_no_conflict(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "problem.json"
    optgap.save(optgap.generate("coscheduling", size=3), path)
    answer = cli("solve", str(path), "--conflict")
    assert answer.code == 0
    assert "no conflict: jobs may wait" in answer.out
