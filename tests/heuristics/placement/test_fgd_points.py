"""FGD's points, trunc(100·sigmoid(x)), as a table of steps."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optgap.heuristics.placement.fgd import sigmoid_steps
from optgap.heuristics.placement.scores import fgd_points


def direct(x: float) -> int:
    return math.trunc(100 * (1 / (1 + math.exp(-x))))


def test_a_full_gpu_of_fragment_is_73_points_or_26() -> None:
    steps = sigmoid_steps()
    assert [fgd_points(steps, x) for x in (0.0, 1.0, -1.0)] == [50, 73, 26]


def test_steps_fall_where_pythons_own_exponential_puts_them() -> None:
    steps = sigmoid_steps()
    for points, step in enumerate(steps.tolist(), start=1):
        x = step
        for _ in range(40):
            x = math.nextafter(x, -math.inf)
        for _ in range(80):
            assert fgd_points(steps, x) == direct(x), (points, x)
            x = math.nextafter(x, math.inf)


@given(st.floats(-62, 62) | st.floats(-1e-13, 1e-13))
def test_the_table_is_the_formula(x: float) -> None:
    assert fgd_points(sigmoid_steps(), x) == direct(x)


def test_steps_rise() -> None:
    assert (np.diff(sigmoid_steps()) > 0).all()
