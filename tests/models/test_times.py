"""What counts as the same time, whatever the clock shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optgap.models.coscheduling import (
    Application,
    CoschedulingProblem,
    CoschedulingSolution,
    Mode,
    Run,
)
from optgap.models.times import SHORTEST_S, TOLERANCE_S, freed_s, shown, slack_s

CLOCKS = (0.0, 1.7e9)


def test_the_same_is_a_microsecond_and_what_rounding_makes_of_the_number_itself() -> None:
    assert slack_s(0.0) == TOLERANCE_S == SHORTEST_S == 1e-6
    for time_s in (1.0, 1.7e9, 1e12):
        rounding = slack_s(time_s) - TOLERANCE_S
        assert 2 * math.ulp(time_s) <= rounding + 1e-16 <= 4 * math.ulp(time_s) + 2e-16
    assert slack_s(1.7e9) < 2e-6
    assert slack_s(np.array([-1.7e9, 0.0])).tolist() == [slack_s(1.7e9), TOLERANCE_S]


def test_room_is_made_no_earlier_than_half_way() -> None:
    assert freed_s(0.0, 10.0) == 10.0 - slack_s(10.0)
    assert freed_s(0.0, 1e-6) == 0.5e-6
    assert freed_s(3.0, 3.0) == 3.0
    for start in CLOCKS:  # half a step of the number itself is none
        assert freed_s(start, math.nextafter(start, math.inf)) > start


def test_a_clock_that_counts_from_1970_is_told_to_the_second() -> None:
    assert shown(59.9999978) == "60"
    assert shown(1_700_000_012.0) == "1700000012"


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("lasts", [1e-5, 10.0])
def test_two_jobs_on_one_gpu_are_seen_however_short(clock: float, lasts: float) -> None:
    app = Application("a", (Mode(1, lasts, 100.0),))
    problem = CoschedulingProblem.of([app], [0, 0], gpus=1, releases=[clock, clock])

    def broken(start: float) -> list[str]:
        runs = [Run(k, t, t + lasts, (0,)) for k, t in enumerate((clock, clock + start))]
        return [v.constraint for v in problem.check(CoschedulingSolution.of(runs))]

    assert broken(lasts) == []
    assert broken(0.2 * lasts) == broken(0.0) == ["one job per GPU"]
