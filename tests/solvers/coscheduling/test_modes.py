from __future__ import annotations

import pytest
from exhaustive_coscheduling import exhaustive
from hypothesis import given
from strategies_coscheduling import coscheduling_problems

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.limits import Limits
from optgap.solvers.coscheduling.modes import one_by_one, promising
from optgap.solvers.coscheduling.patterns import bound_patterns


def least(problem: CoschedulingProblem) -> float:
    found = exhaustive(problem, limits=Limits(), seed=0).claimed
    assert found is not None
    return found


@given(problem=coscheduling_problems(max_jobs=3))
def test_the_optimum_needs_only_modes_that_are_promising(problem: CoschedulingProblem) -> None:
    fewer = promising(problem)
    assert all(fewer.applications[a].modes for a in problem.jobs)
    assert least(fewer) == pytest.approx(least(problem), rel=1e-12)
    assert least(problem) <= one_by_one(problem) * (1 + 1e-12)


def test_a_mode_dearer_than_a_whole_schedule_is_not_looked_at() -> None:
    """4 mJ beside 170 MJ from 9 s on: in one program a solver's tolerance was 1e-8 J."""
    app = Application("a", (Mode(1, 1e-3, 4.0), Mode(2, 1e6, 85.0)))
    problem = CoschedulingProblem.of([app, app_of("b")], [0, 1], gpus=2, releases=[0.0, 9.0])
    assert [m.gpu_count for m in promising(problem).applications[0].modes] == [1]
    bound = bound_patterns(problem, limits=Limits(), seed=0).bound
    assert least(problem) * (1 - 1e-6) <= bound <= least(problem)


def app_of(name: str) -> Application:
    """A millisecond on one GPU."""
    return Application(name, (Mode(1, 1e-3, 4.0),))


def test_costs_beyond_idle_that_cancel_leave_a_bound_rounded_down() -> None:
    """Jobs that draw a microwatt on a node that idles at a megawatt, and never does."""
    app = Application("a", (Mode(2, 3.7, 1e-6),))
    problem = CoschedulingProblem.of([app], [0] * 3, gpus=2, idle_w=1e6)
    bound = bound_patterns(problem, limits=Limits(), seed=0).bound
    assert 0 <= bound <= least(problem)
