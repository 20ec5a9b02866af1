"""Options that the paper leaves open: idle GPUs under the limit, boots, and profiling by Zeus."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies_elastic import FREE, jobs_of, table, two_jobs

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind
from optgap.models.limits import Limits
from optgap.registry import FAMILIES

POLICIES = FAMILIES["elastic"].policies


def solved(problem: ElasticProblem, name: str = "powerflow", **params: Any) -> ElasticSolution:
    outcome = POLICIES[name].load()(problem, limits=Limits(), seed=0, **params)
    assert isinstance(outcome.solution, ElasticSolution)
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return outcome.solution


def at_first(solution: ElasticSolution) -> dict[int, int]:
    """GPUs at time 0, by job."""
    at = np.flatnonzero(solution.start_s == 0)
    return {int(solution.job[s]): int(solution.gpus[s]) for s in at}


def test_idle_gpus_of_nodes_that_are_on_count_where_asked_for() -> None:
    problem = replace(two_jobs(360.0), idle_w=40.0)
    # A and B on 1 and 2 GPUs at 1,000 MHz take 330 W, and 370 W with the GPU that is left;
    # on 2 and 1 GPUs they take 310 W, and 350 W with it
    assert at_first(solved(problem, profiles="perfect")) == {0: 1, 1: 2}
    assert at_first(solved(problem, profiles="perfect", count_idle=True)) == {0: 2, 1: 1}


def test_a_job_waits_for_nodes_that_were_off_and_not_for_those_that_are_on() -> None:
    unit = table("unit", [[1.0]], [[100.0]])
    problem = ElasticProblem.of(
        [unit], jobs_of([0, 0], [100, 100], [0, 10]), [1000.0], gpus=2, gpus_per_node=2,
        eta=1.0, p_max_w=150.0, idle_w=5.0, overhead=FREE,
    )  # fmt: skip
    solution = solved(problem, profiles="perfect", boot_s=30.0)
    waits = solution.kind == Kind.RESTART
    assert solution.job[waits].tolist() == [0]
    assert (solution.end_s - solution.start_s)[waits].tolist() == [30.0]
    assert sorted(solution.end_s[~waits].tolist()) == pytest.approx([110, 130])
    assert Kind.RESTART not in solved(problem, profiles="perfect").kind
    assert Kind.RESTART not in solved(problem, profiles="perfect", boot_s=30.0,
                                      switch_off=False).kind  # fmt: skip


@pytest.mark.parametrize("name", ["tiresias+zeus", "gandiva+zeus"])
def test_zeus_measures_fifty_iterations_at_every_clock_from_the_highest_down(name: str) -> None:
    a = table("A", [[1.0, 0.8, 0.5]], [[100.0, 150.0, 300.0]])
    problem = ElasticProblem.of(
        [a], jobs_of([0], [400]), [1000.0, 1200.0, 1400.0], gpus=1, gpus_per_node=1,
        eta=1.0, p_max_w=400.0, idle_w=5.0, overhead=FREE,
    )  # fmt: skip
    solution = solved(problem, name, zeus_eta=1.0, zeus_profile=True)
    spans = solution.end_s - solution.start_s
    clocks = solution.frequency.tolist()
    assert clocks[:3] == [2, 1, 0]
    assert spans[:2] == pytest.approx([25, 40])
    assert set(clocks[2:]) == {0}  # least energy
    assert spans[2:].sum() == pytest.approx(300)
    plain = solved(problem, name, zeus_eta=1.0)
    assert set(plain.frequency.tolist()) == {0}
