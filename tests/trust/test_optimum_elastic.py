"""`exhaustive` against a program that shares nothing with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimum_elastic import optimum
from strategies_elastic import elastic_problems
from trust.agreement import examples

import optgap
from optgap.documents import load_problem
from optgap.models.elastic import ElasticProblem
from optgap.models.result import Status

FEW = elastic_problems(max_jobs=3, free=True)
FOUR = elastic_problems(max_jobs=4, max_clocks=2, free=True, gpus=(1, 2))


@pytest.mark.parametrize("problems", [FEW, FOUR], ids=["few", "four"])
@pytest.mark.parametrize("cap", ["power", "none"])
def test_every_order_with_every_joint_configuration_has_the_same_optimum(
    problems: st.SearchStrategy[ElasticProblem], cap: Any
) -> None:
    @examples(25, long=250)
    @given(problem=problems)
    def agree(problem: ElasticProblem) -> None:
        problem = replace(problem, cap=cap)
        jobs = problem.jobs
        truth = optimum(
            jobs.submit_s, jobs.iterations, problem.time_s[jobs.of_class],
            problem.power_w[jobs.of_class], problem.counts, problem.gpus, problem.power_limit_w,
        )  # fmt: skip
        best = optgap.solve(problem, "exhaustive", time_limit=60)
        assert best.status is Status.OPTIMAL, best.message
        assert best.objective == pytest.approx(truth, rel=2e-6)
        assert best.bound <= truth * (1 + 1e-6)

    agree()


DOORS = {1: 4.6908, 2: 5.5232, 3: 4.5997, 4: 10.1307, 5: 9.6434, 6: 8.6571}
"""Mean JCT, s, of problems whose optimum would be less if it could profile to keep the limit."""


@pytest.mark.parametrize("number", DOORS)
def test_an_optimum_that_must_not_profile_is_reached(number: int) -> None:
    problem = load_problem(Path(__file__).parent / "elastic_doors" / f"limit-{number}.json")
    best = optgap.solve(problem, "exhaustive")
    assert best.status is Status.OPTIMAL
    assert best.objective == pytest.approx(DOORS[number], abs=6e-5)
    assert best.bound == pytest.approx(DOORS[number], abs=6e-5)
