"""List schedules and the annealing of their orders."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from strategies_coscheduling import coscheduling_problems
from trust.agreement import examples

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.coscheduling.gpus import placed
from optgap.models.coscheduling.presets import stream, synthetic
from optgap.models.limits import Limits
from optgap.solvers.coscheduling.lists import annealed, in_order, listed, value_of


@examples(15)
@given(problem=coscheduling_problems(max_jobs=6))
def test_lists_keep_every_constraint(problem: CoschedulingProblem) -> None:
    counts = [problem.application(job).fastest.gpu_count for job in range(len(problem))]
    best = listed(problem, counts)
    order = [job for job, _, _ in sorted(best, key=lambda item: item[2])]
    for starts in (best, in_order(problem, counts, order)):
        solution = placed(problem, starts)
        assert problem.check(solution) == []
        assert problem.serves_all(solution)
        assert value_of(problem, starts) <= value_of(problem, best) * (1 + 1e-9)


def test_annealing_makes_no_schedule_worse_and_keeps_the_gpu_counts() -> None:
    for problem in (synthetic(seed=1, size=30, gpus=8, numa=4), stream(seed=1, size=14)):
        rng = np.random.default_rng(0)
        counts = [problem.application(job).modes[0].gpu_count for job in range(len(problem))]
        first = listed(problem, counts)
        found = annealed(problem, first, rng, Limits(0.3), 0.0)
        assert value_of(problem, found) <= value_of(problem, first)
        assert {(job, g) for job, g, _ in found} == {(job, g) for job, g, _ in first}
        assert problem.check(placed(problem, found)) == []
