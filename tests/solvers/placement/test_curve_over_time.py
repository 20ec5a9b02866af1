"""What is proven at every moment of a schedule: never above it, and the bound in all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import timed_placement_problems

import optgap
from optgap.models.errors import InputError
from optgap.models.placement import PlacementProblem
from optgap.models.placement.presets_over_time import small_time
from optgap.models.placement.timeline import timeline
from optgap.solvers.placement.over_time.curve import bound_curve
from optgap.views import plot_solution


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


def test_it_is_drawn_under_the_power_and_its_energy_told() -> None:
    ran = optgap.run(small_time(seed=1, size=8).moved(1.7e9), "fgd")
    figure = ran.plot(bound=True)
    power, least = figure.axes[0].lines
    assert power.get_xdata()[0] == least.get_xdata()[0] == 0.0
    assert "proven for what runs: at least" in " ".join(figure.get_suptitle().split())
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "power",
        "the least that is proven",
    ]


def test_where_tasks_stay_there_is_no_such_curve() -> None:
    ran = optgap.run(optgap.generate("placement", "small", size=4), "fgd")
    with pytest.raises(InputError, match="bound: found a problem of placement without times"):
        plot_solution(ran, bound=True)
