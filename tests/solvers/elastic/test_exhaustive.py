from __future__ import annotations

import numpy as np
import pytest
from strategies_elastic import FREE, jobs_of, table

from optgap.models.elastic import ElasticProblem
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.elastic.exhaustive import exhaustive


def two_and_one_later(submit_s: float) -> ElasticProblem:
    """Jobs of 10 s on one GPU or two, of which two GPUs hold two at a time."""
    return ElasticProblem.of(
        [table("unit", [[1.0], [1.0]], [[100.0], [200.0]])],
        jobs_of([0, 0, 0], [10, 10, 10], [0, 0, submit_s]),
        [1000.0],
        gpus=2,
        gpus_per_node=2,
        cap="none",
        idle_w=0.0,
        overhead=FREE,
    )


@pytest.mark.parametrize("submit_s", [10, 12, 19, 20])
def test_a_job_submitted_after_two_that_run_side_by_side_delays_none(submit_s: float) -> None:
    problem = two_and_one_later(submit_s)
    best = exhaustive(problem, limits=Limits(60), seed=0)
    assert best.status is Status.OPTIMAL
    assert problem.check(best.solution) == []
    assert problem.evaluate(best.solution).objective == pytest.approx(10, rel=1e-6)
    assert np.isclose(best.bound, 10, rtol=1e-6)
