"""The compact model by itself, and where it takes turns with branch-and-price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ortools.sat.python import cp_model
from trees_consolidation import least_watts

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.consolidation import exact
from optgap.solvers.consolidation.bounds import cost_levels, level_counts
from optgap.solvers.consolidation.compact import Compact, solve_compact
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.exact import Exact
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.outcome import Bound, Incumbent


def small(seed: int) -> ConsolidationProblem:
    """Six tasks on servers of two GPUs; memory alone limits them."""
    return mixed(seed=seed, size=6, servers=4, gpus_per_server=2, capacity="none")


@pytest.mark.parametrize("seed", range(8))
def test_the_compact_model_finds_an_optimal_placement(seed: int) -> None:
    problem = small(seed)
    least = least_watts(problem)
    assert least is not None
    instance = instance_of(problem)
    model = Compact(instance, 4)
    answer, placement = model.run(Limits(20), 0.0, 0)
    assert answer.status == cp_model.OPTIMAL
    assert placement is not None
    assert problem.check(instance.solution(placement)) == []
    assert instance.total(placement) == pytest.approx(least, rel=1e-6)


def test_a_better_bound_does_not_limit_the_servers_of_the_compact_model() -> None:
    """Three pairs of GPUs need three servers of three, where six GPUs would do with two."""
    tasks = [Task(f"w{k}", 11.0, 2, 1.2) for k in range(3)] + [Task("s", 4.0, 1, 1.2)]
    servers, kinds = [Server((0,) * 3, 200.0)] * 3, [GpuKind(memory_gb=16.0)]
    problem = ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none"))
    best = least_watts(problem)
    assert best is not None
    incumbent = Incumbent(instance_of(problem))
    incumbent.offer([(0, 1), (3, 4), (6, 7), (2,)])  # a GPU more than it takes
    assert best < incumbent.watts < best + 200.0
    counts = level_counts(incumbent.instance, cost_levels(incumbent.instance))
    assert incumbent.instance.servers_for(counts[0]) == 2
    answer = solve_compact(incumbent, Bound(best, "known", counts), Limits(20), 0, 10**6)
    assert answer is not None
    assert not answer.infeasible
    assert incumbent.watts == pytest.approx(best, rel=1e-6)
    assert answer.bound.watts <= best * (1 + 1e-6)


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the compact model of anything for too large."""
    small = replace(DEFAULT, exact=replace(DEFAULT.exact, compact_literals=0))
    monkeypatch.setattr(exact, "DEFAULT", small)


@pytest.mark.usefixtures("no_model")
def test_the_tree_ends_it_where_the_compact_model_would_be_too_large() -> None:
    problem = mixed(seed=0, size=32, gpus_per_server=4, capacity="none")
    outcome = Exact(instance_of(problem), Limits(), 0).run()
    assert outcome.status is Status.OPTIMAL
    assert outcome.message == ""
    assert problem.check(outcome.solution) == []
    assert "columns" in str(outcome.bound_by)


@pytest.mark.usefixtures("no_model")
def test_without_a_tree_and_a_compact_model_the_row_says_why_the_gap_is_open() -> None:
    kinds = [GpuKind(name="a", memory_gb=16.0), GpuKind(name="b", memory_gb=24.0)]
    tasks = [Task(f"t{k}", 9.0, 1, 1.1 + 0.2 * k) for k in range(5)]
    servers = [Server((k % 2,) * 2, 100.0) for k in range(4)]
    problem = ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none"))
    outcome = Exact(instance_of(problem), Limits(), 0).run()
    assert outcome.status is Status.FEASIBLE
    assert outcome.message == "not proven: too large for the compact model"
    assert outcome.bound is not None
    assert outcome.bound < problem.evaluate(outcome.solution).objective
