"""Reading runs off at one grid of loads: the PWR paper's rule, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import two_nodes_problem
from hypothesis import given
from hypothesis import strategies as st

from optgap import run
from optgap.models.errors import InputError
from optgap.models.placement.series import replay
from optgap.reproduce.grid import aggregate, curve_of, loads, on_grid, savings


def read(
    arrived: list[int], values: list[float], capacity: int = 100, **more: float
) -> list[float]:
    """`on_grid` with four grid points per unit of load: 0, 25, 50, 75 and 100 milli-GPU."""
    found = on_grid(np.array(arrived), capacity, np.array(values), steps=4, **more)
    return [float(value) for value in found]


def test_rows_at_grid_points_are_taken_as_they_are() -> None:
    assert read([0, 25, 50, 75, 100], [1, 2, 3, 4, 5]) == [1, 2, 3, 4, 5]


def test_of_rows_with_the_same_load_the_first_counts() -> None:
    assert read([0, 25, 25, 25, 50, 75, 100], [1, 2, 9, 9, 3, 4, 5]) == [1, 2, 3, 4, 5]


def test_a_missing_load_is_half_way_between_its_neighbours_wherever_it_lies() -> None:
    # 25 lies close to the row at 24, and is half-way all the same
    assert read([0, 24, 50, 75, 100], [0, 2, 6, 7, 8]) == [0, 4, 6, 7, 8]


def test_the_neighbour_on_the_left_is_the_first_row_of_its_load() -> None:
    assert read([0, 20, 20, 50, 75, 100], [0, 2, 100, 6, 7, 8])[1] == 4


def test_several_missing_loads_divide_the_step_evenly() -> None:
    assert read([0, 10, 90, 100], [0, 1, 5, 6]) == [0, 2, 3, 4, 6]


def test_loads_before_the_first_row_take_its_value() -> None:
    assert read([30, 50, 75, 100], [7, 8, 9, 10]) == [7, 7, 8, 9, 10]


def test_loads_after_the_last_row_are_unknown() -> None:
    found = read([0, 25, 60], [1, 2, 4])
    assert found[:3] == [1, 2, 3]
    assert np.isnan(found[3:]).all()


def test_a_load_that_floating_point_cannot_hold_still_meets_its_grid_point() -> None:
    # 0.35 × 6,212,000 is whole, though neither 0.35 nor 70 / 200 is exact
    found = on_grid(np.array([0, 2_174_200]), 6_212_000, np.array([1.0, 5.0]))
    assert found[70] == 5.0


def test_the_grid_may_end_elsewhere() -> None:
    assert read([0, 150], [2, 4], upto=0.5) == pytest.approx([2, 2 + 2 / 3, 2 + 4 / 3])
    assert loads(0.5, 4).tolist() == [0, 0.25, 0.5]
    assert len(loads()) == 201


@pytest.mark.parametrize(
    ("arrived", "values", "capacity"),
    [([0, 1], [1.0], 10), ([], [], 10), ([0], [1.0], 0), ([5, 3], [1.0, 2.0], 10)],
)
def test_what_is_no_run_is_refused(arrived: list[int], values: list[float], capacity: int) -> None:
    with pytest.raises(InputError):
        on_grid(np.array(arrived, dtype=np.int64), capacity, np.array(values))


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=30),
    st.integers(1, 300),
    st.data(),
)
def test_values_on_the_grid_stay_between_those_of_the_run(
    steps: list[int], capacity: int, data: st.DataObject
) -> None:
    arrived = np.cumsum(steps)
    values = np.array([data.draw(st.floats(-5, 5)) for _ in steps])
    found = on_grid(arrived, capacity, values)
    reached = found[np.isfinite(found)]
    assert (reached >= values.min() - 1e-9).all()
    assert (reached <= values.max() + 1e-9).all()
    beyond = np.arange(201) * capacity > arrived[-1] * 200
    assert np.isnan(found[beyond & (np.arange(201) * capacity > arrived[0] * 200)]).all()


def test_runs_are_averaged_and_their_spread_is_the_sample_deviation() -> None:
    curve = curve_of(loads(1, 2), np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]))
    assert curve.mean.tolist() == [2, 2, 4]
    assert curve.std == pytest.approx([2**0.5, 0, 2**0.5])
    assert curve.at(0.9) == 4
    assert curve.between(0, 0.5).tolist() == [2, 2]


def test_one_run_has_no_spread() -> None:
    assert np.isnan(curve_of(loads(1, 1), np.array([[1.0, 2.0]])).std).all()


def test_a_point_that_one_run_does_not_reach_is_unknown() -> None:
    curve = curve_of(loads(1, 1), np.array([[1.0, 2.0], [1.0, np.nan]]))
    assert curve.mean[0] == 1
    assert np.isnan(curve.mean[1])


def test_series_are_aggregated_by_attribute_or_function() -> None:
    problem = two_nodes_problem()
    runs = [replay(problem, run(problem, policy).solution) for policy in ("pwr", "fgd")]
    power = aggregate(runs, "power_w", upto=0.5, steps=2)
    same = aggregate(runs, lambda series: series.power_cpu_w + series.power_gpu_w, 0.5, 2)
    # one GPU of four has been asked for by 25 %, two by 50 %: 495 W when both tasks share a node
    assert power.runs.tolist() == same.runs.tolist()
    assert power.runs[0, 1] == 495.0
    with pytest.raises(InputError):
        aggregate(runs, "watts")
    with pytest.raises(InputError):
        aggregate([], "power_w")


def test_a_saving_is_a_ratio_of_means_and_its_runs_are_ratios() -> None:
    axis = loads(1, 1)
    fgd = curve_of(axis, np.array([[100.0, 100.0], [300.0, 100.0]]))
    pwr = curve_of(axis, np.array([[50.0, 90.0], [270.0, 80.0]]))
    saved = savings(fgd, pwr)
    assert saved.mean == pytest.approx([20.0, 15.0])  # not 30, the mean of 50 and 10
    assert saved.runs.tolist() == [[50.0, 10.0], [10.0, 20.0]]
    with pytest.raises(InputError):
        savings(fgd, curve_of(axis, np.array([[1.0, 2.0]])))
