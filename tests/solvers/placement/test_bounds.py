"""Patterns on clusters beyond enumeration: gaps, and what is proven not to fit."""

from __future__ import annotations

import numpy as np
import pytest

import optgap
from optgap.models.jsonio import Fields
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, presets
from optgap.models.result import Status, Termination


@pytest.mark.parametrize(("goal", "most"), [("power", 0.03), ("fragmentation", 0.12)])
def test_the_gap_is_proven_small_on_24_nodes(goal: str, most: float) -> None:
    problem = presets.alibaba(seed=1, size=24, load=0.6, goal=goal)  # type: ignore[arg-type]
    result = optgap.solve(problem, "patterns", rounds=1)
    assert result.status is Status.FEASIBLE
    assert result.gap <= most
    assert problem.serves_all(result.solution)
    assert optgap.run(problem, "greedy-exact").objective > result.objective


def test_an_overloaded_cluster_is_proven_infeasible() -> None:
    problem = presets.alibaba(seed=0, size=40, load=1.2)
    result = optgap.bound(problem, "bound-patterns")
    assert result.status is Status.INFEASIBLE
    asked, there = problem.tasks.demand_milli.sum() / 1000, int(problem.cluster.gpus.sum())
    assert f"{asked:g} GPUs asked for, {there} there" in result.message


def test_a_task_that_fits_nowhere_is_named() -> None:
    problem = presets.alibaba(seed=0, size=40, load=0.2)
    tasks = problem.tasks.to_json()
    tasks["gpu_spec"] = ["V100M32" if n == 8 else "T4" for n in tasks["num_gpu"]]
    tasks["num_gpu"][5], tasks["gpu_milli"][5], tasks["gpu_spec"][5] = 8, 1000, "T4"
    document = {**problem.to_json(), "tasks": tasks}
    changed = PlacementProblem.from_json(Fields(document, "test"))
    result = optgap.bound(changed, "bound-patterns")
    assert result.status is Status.INFEASIBLE
    assert "(arrival 5) fits no node" in result.message


def test_an_interrupt_keeps_the_bound_so_far() -> None:
    problem = presets.alibaba(seed=1, size=121, load=0.5)
    limits = Limits()
    seen: list[float] = []

    def progress(phase: str, incumbent: float | None, bound: float | None) -> None:
        if bound is not None and np.isfinite(bound):
            seen.append(bound)
        if len(seen) == 60:
            limits.interrupted.set()

    limits = Limits(progress=progress, interrupted=limits.interrupted)
    result = optgap.bound(problem, "bound-patterns", limits=limits)
    assert result.termination is Termination.INTERRUPTED
    assert result.status is Status.BOUND_ONLY
    assert result.bound == pytest.approx(max(seen), rel=1e-6)
