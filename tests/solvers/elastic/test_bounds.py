from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies_elastic import elastic_problems, rigid
from trust.agreement import examples

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.presets import small, tiny
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.registry import FAMILIES
from optgap.solvers.elastic import METHODS, auto, auto_bound
from optgap.solvers.elastic.area import shortest_first

POLICIES = FAMILIES["elastic"].policies

BOUNDS = [name for name, entry in METHODS.items() if entry.kind == "bound"]


def solved(problem: ElasticProblem, method: str, **params: Any) -> Outcome:
    outcome: Outcome = METHODS[method].load()(problem, limits=Limits(60), seed=0, **params)
    return outcome


def bound(problem: ElasticProblem, method: str, **params: Any) -> float:
    value = solved(problem, method, **params).bound
    assert value is not None
    return value


def value(problem: ElasticProblem, outcome: Outcome) -> float:
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return problem.evaluate(outcome.solution).objective


@examples(4)
@given(problem=elastic_problems(max_jobs=4))
def test_bounds_with_restarts_are_below_every_policy(problem: ElasticProblem) -> None:
    least = min(
        value(problem, entry.load()(problem, limits=Limits(), seed=0))
        for entry in POLICIES.values()
    )
    for method in (*BOUNDS, "exhaustive"):
        assert bound(problem, method) <= least * (1 + 1e-6), method


def test_the_optimum_of_rigid_jobs_on_one_gpu_is_shortest_first() -> None:
    problem = rigid([(0, 100, 1), (0, 30, 1), (20, 5, 1)], gpus=1, per_node=1)
    ends = shortest_first(problem.jobs.submit_s, np.array([100.0, 30.0, 5.0]))
    assert ends.tolist() == [135, 35, 25]
    mean = (135 + 35 + 5) / 3
    assert value(problem, solved(problem, "exhaustive")) == pytest.approx(mean)
    assert bound(problem, "bound-prices") == pytest.approx(mean, rel=0.02)


def test_prices_come_within_15_percent_of_the_optimum_in_the_median() -> None:
    gaps = []
    for seed in range(5):
        problem = tiny(seed=seed, size=4)
        gaps.append(value(problem, solved(problem, "exhaustive")) / bound(problem, "bound-prices"))
    assert min(gaps) >= 1 - 1e-6
    assert float(np.median(gaps)) < 1.15


def test_the_method_goes_by_the_size_of_the_problem() -> None:
    assert auto(tiny(seed=0)) == auto_bound(tiny(seed=0)) == "exhaustive"
    assert (auto(small(seed=0)), auto_bound(small(seed=0))) == ("offline", "bound-prices")
    few = small(seed=0, size=6)
    assert (auto(few), auto_bound(few)) == ("offline", "exhaustive")  # restarts cost time
    with pytest.raises(InputError, match="at most 12 jobs"):
        solved(small(seed=0), "exhaustive")
