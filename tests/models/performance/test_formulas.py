"""The formulas give the papers' numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from powerflow import ENERGY, TIME

from optgap.models.errors import InputError
from optgap.models.jsonio import dump_json
from optgap.models.performance import (
    EnergyModel,
    ThroughputModel,
    batch_power,
    linear_power,
    power_law_power,
    power_law_time,
    read_fit,
    runtime_from_dram,
    sla_frequency,
)
from optgap.models.performance.formulas import blended_runtime
from optgap.models.performance.throughput import SYNC_NAMES, p_norm, sync_columns

GPUS = np.array([1, 2, 4, 8])
ON_NODE = np.array([1, 2, 4, 4])
NODES = np.array([1, 1, 1, 2])


def test_the_parts_of_the_worked_example() -> None:
    io, grad, sync = ThroughputModel(TIME).parts(GPUS, 64 / GPUS, 1200.0, NODES, ON_NODE)
    assert io == pytest.approx([0.00528, 0.00528, 0.00528, 0.00464])
    assert grad == pytest.approx([0.0956, 0.0508, 0.0284, 0.0172])
    assert sync == pytest.approx([0, 0.0090, 0.0155, 0.0615])
    assert ThroughputModel(TIME).iteration_time(1, 64, 1200.0) == pytest.approx(0.095746, rel=2e-5)


def test_both_branches_of_the_worked_example_meet_at_the_breakpoint() -> None:
    model = EnergyModel(ENERGY, "printed")
    below, above = model.powers(1.0, 799.999999), model.powers(1.0, 800.0)
    for low, high in zip(below, above, strict=True):
        assert low == pytest.approx(float(high), rel=1e-6)


SECONDS, GAMMA = st.floats(1e-4, 1e2), st.floats(1, 10)


@given(SECONDS, SECONDS, st.floats(0, 1e2), GAMMA, GAMMA)
def test_an_iteration_takes_between_its_longest_part_and_the_sum(
    io: float, grad: float, sync: float, gamma1: float, gamma2: float
) -> None:
    parts = [np.array([part]) for part in (io, grad, sync)]
    total = p_norm(*parts, gamma1, gamma2)[0]
    assert max(io, grad, sync) * (1 - 1e-9) <= total <= (io + grad + sync) * (1 + 1e-9)


@pytest.mark.parametrize("form", list(SYNC_NAMES))
def test_one_gpu_never_synchronises(form: str) -> None:
    ones = np.ones(3)
    columns = sync_columns(form, ones, ones, ones, 1000 * ones)  # type: ignore[arg-type]
    assert columns.shape == (3, len(SYNC_NAMES[form]))
    assert np.all(columns == 0)


DRAM, CLOCKS = [0.5, 1.0], np.array([500.0, 1000.0])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (power_law_time(1155, 1.0, 0.91, 1350), pytest.approx(1.1525, abs=1e-4)),
        (sla_frequency(1350, 1.2, 0.0), 0),
        (power_law_power(CLOCKS, 20, 90, 1, 1000), pytest.approx(linear_power(CLOCKS, 20, 0.09))),
        (runtime_from_dram(DRAM, "rate", 0.1, 0.2), pytest.approx([5, 1 / 0.3])),
        (runtime_from_dram(DRAM, "power", 10, 1.0), pytest.approx([20, 10])),
        (runtime_from_dram(DRAM, "traffic", 10), pytest.approx([20, 10])),
        (blended_runtime([0.5], 0.1, 0.2, 10, 1.0), pytest.approx([10])),
    ],
)
def test_a_formula_gives_what_its_paper_says(found: Any, expected: Any) -> None:
    assert found == expected


def test_power_by_batch_stands_still_outside_its_ends() -> None:
    power = batch_power([1, 8, 64, 512, 4096], 30.0, 0.0, 10.0, low=8, high=512)
    assert power[0] == power[1]
    assert power[3] == power[4]
    assert power[2] - power[1] == pytest.approx(30 * np.log(8))


def test_reading_parameters_refuses_other_documents(tmp_path: object) -> None:
    path = f"{tmp_path}/other.json"
    dump_json(path, {"schema": "something/1"})
    with pytest.raises(InputError, match=r"optgap\.fit/1"):
        read_fit(path)
