from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies_consolidation import consolidation_problems

from optgap.heuristics.consolidation import POLICIES
from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import pai
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation.over_time.energy import bound_energy

RUNS = consolidation_problems(goal="energy", capacities=("none", "mean", "peak"), scaled=True)


@settings(max_examples=16)
@given(problem=RUNS)
def test_no_policy_beats_the_energy_bound(problem: ConsolidationProblem) -> None:
    bound = bound_energy(problem, limits=Limits(), seed=0).bound
    assert bound is not None
    for name, entry in POLICIES.items():
        if name == "opt_repack":  # solves every event
            continue
        outcome = entry.load()(problem, limits=Limits(20), seed=0)
        if outcome.solution is None:
            continue
        assert problem.check(outcome.solution) == [], name
        found = problem.evaluate(outcome.solution)
        assert found.metrics["floor_energy_j"] <= found.objective * (1 + 1e-9), name
        if problem.serves_all(outcome.solution):
            assert bound <= found.objective * (1 + 1e-9), name


def test_one_task_alone_meets_the_bound() -> None:
    problem = ConsolidationProblem.of(
        [GpuKind()], [Server((0,), 50.0)], [Task("a", 32.0, kappa=1.0, duration_s=100.0)],
        goal="energy",
    )  # fmt: skip
    bound = bound_energy(problem, limits=Limits(), seed=0).bound
    assert bound == pytest.approx(100 * 194.8)


def test_presence_counts_only_where_nobody_may_wait() -> None:
    tasks = [Task(f"t{k}", 20.0, kappa=1.0, duration_s=100.0) for k in range(2)]
    bounds = []
    for waiting in (True, False):
        problem = ConsolidationProblem.of(
            [GpuKind()], [Server((0, 0))], tasks, goal="energy", rules=Rules(waiting=waiting)
        )
        bounds.append(bound_energy(problem, limits=Limits(), seed=0).bound)
    assert bounds[0] == pytest.approx(2 * 100 * 144.8 * 20 / 32)
    assert bounds[1] == pytest.approx(2 * 100 * 144.8)


def test_a_trace_has_a_bound_that_all_rivals_keep() -> None:
    problem = pai(seed=3, size=150, present=15)
    bound = bound_energy(problem, limits=Limits(), seed=0).bound
    assert bound is not None
    for name in ("cats", "hotcloud", "first", "opt_nomig"):
        outcome = POLICIES[name].load()(problem, limits=Limits(), seed=0)
        assert problem.serves_all(outcome.solution)
        assert problem.evaluate(outcome.solution).objective > bound


def test_power_that_follows_utilisation_has_a_bound_sample_by_sample() -> None:
    series = np.array([100.0, 0.0, 50.0, 50.0])
    task = Task("a", 32.0, kappa=1.0, duration_s=200.0, util_percent=series)
    problem = ConsolidationProblem.of(
        [GpuKind()], [Server((0,))], [task], goal="energy", period_s=50.0,
        rules=Rules(util_scaled=True),
    )  # fmt: skip
    bound = bound_energy(problem, limits=Limits(), seed=0).bound
    assert bound == pytest.approx(200 * 23.3 + 50 * 121.5 * (1 + 0 + 0.5 + 0.5))
    alone = POLICIES["default"].load()(problem, limits=Limits(), seed=0)
    assert problem.evaluate(alone.solution).objective == pytest.approx(bound)
