"""What is proven at every moment of a schedule: never above it, and the bound in all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import timed_placement_problems

import optgap
from optgap.models.placement import PlacementProblem
from optgap.models.placement.timeline import timeline
from optgap.solvers.placement.over_time.curve import bound_curve


@settings(max_examples=15)
@given(problem=timed_placement_problems(goals=("energy",), max_tasks=5))
def test_it_is_below_the_power_of_the_schedule_at_every_moment(problem: PlacementProblem) -> None:
    ran = optgap.run(problem, "fgd")
    if (ran.solution.node < 0).all():
        return
    curve, line = bound_curve(problem, ran.solution), timeline(problem, ran.solution)
    held = line.time_s[np.diff(line.time_s, append=np.inf) > 1e-3] + 5e-4  # between changes
    least = curve.power_w[np.searchsorted(curve.time_s, held, side="right") - 1]
    power = line.power_w[np.searchsorted(line.time_s, held, side="right") - 1]
    assert (least <= power * (1 + 1e-9)).all()
    assert curve.energy_j <= ran.objective * (1 + 1e-9)
    assert problem.over_time is not None
    if not problem.over_time.waits:
        bound = optgap.bound(problem.restrict(ran.solution)).bound
        assert curve.energy_j == pytest.approx(bound, rel=2e-3)
