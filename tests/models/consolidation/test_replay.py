from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from slow_consolidation_time import stepwise
from strategies_consolidation import consolidation_problems
from trust.agreement import examples

from optgap.heuristics.consolidation import CUSTOM, POLICIES
from optgap.heuristics.consolidation.state import ConsolidationState
from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
    GpuKind,
    Server,
    Task,
)
from optgap.models.consolidation.timeline import replay
from optgap.models.limits import Limits

RUNS = consolidation_problems(goal="energy", capacities=("none", "mean"))


def heaped(task: int, state: ConsolidationState) -> list[int] | None:
    """The first GPUs with room, whatever their utilisation."""
    room = np.flatnonzero(state.fits(task)).tolist()
    servers: dict[int, list[int]] = {}
    for g in room:
        own = servers.setdefault(int(state.problem.gpu_server[g]), [])
        own.append(g)
        if len(own) == state.problem.tasks[task].gpus:
            return own
    return None


PILE = {"policy": heaped}


@examples(15)
@given(problem=RUNS)
def test_a_run_comes_to_what_a_plain_loop_over_time_makes_of_it(
    problem: ConsolidationProblem,
) -> None:
    for entry, params in ((POLICIES["cats"], {}), (POLICIES["default"], {}), (CUSTOM, PILE)):
        outcome = entry.load()(problem, limits=Limits(20), seed=0, **params)
        if outcome.solution is None:
            continue
        assert problem.check(outcome.solution) == []
        found = replay(problem, outcome.solution)
        energy, last = stepwise(problem, outcome.solution)
        assert found.energy_j == pytest.approx(energy, rel=1e-6)
        assert max(t for t in found.end_s.tolist() if t < math.inf) == pytest.approx(last, rel=1e-6)


def test_a_task_that_moves_goes_on_where_it_was() -> None:
    """Full load, then none; the second task arrives 130 s after the first."""
    tasks = [
        Task(f"t{k}", 20.0, submit_s=130.0 * k, duration_s=100.0, util_percent=np.array([100.0, 0]))
        for k in range(2)
    ]
    problem = ConsolidationProblem.of(
        [GpuKind()], [Server((0,), 50.0)] * 2, tasks, goal="energy", period_s=50.0
    )
    moved = ConsolidationSolution.of(
        [Assignment(0, (0,)), Assignment(0, (1,), 60.0), Assignment(1, (1,), 130.0)],
        [Clock(0, 1350), Clock(1, 1350)],
    )
    assert problem.check(moved) == []
    assert replay(problem, moved).end_s.tolist() == pytest.approx([100.0, 230.0])
